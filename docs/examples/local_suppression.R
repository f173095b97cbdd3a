# k-anonymity by local suppression with sdcMicro: Rscript local_suppression.R IN OUT K
arguments <- commandArgs(trailingOnly = TRUE)
table <- read.csv(arguments[1], colClasses = "character", check.names = FALSE)
keys <- setdiff(names(table), "occupation")

table[keys] <- lapply(table[keys], factor)
problem <- sdcMicro::createSdcObj(table, keyVars = keys)
problem <- sdcMicro::localSuppression(problem, k = as.integer(arguments[3]))

released <- sdcMicro::extractManipData(problem)
released[keys] <- lapply(released[keys], function(column) ifelse(is.na(column), "*", as.character(column)))
write.csv(released, arguments[2], row.names = FALSE)
