"""Reading what decisions are made on; a world that cannot be read is an error, never empty."""
