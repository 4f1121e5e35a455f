"""The values that all packages speak in; knows nothing of files, clocks, clusters or networks."""
