"""The values that all packages exchange. This package knows no files, clocks, clusters or networks."""
