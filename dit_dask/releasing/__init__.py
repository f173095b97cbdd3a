"""The sanitised table itself: readable values, in a frame or a file, checked against its claim."""
