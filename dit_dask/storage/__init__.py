"""Reading and writing files anywhere: locations, file systems, atomic writes, retries, redaction; fsspec only here."""
