"""Was a person in the table? Attacks on sanitizers by releases with and without each person."""
