"""Reading the input of decisions; a world that cannot be read is an error, never empty."""
