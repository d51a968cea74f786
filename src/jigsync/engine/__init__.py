"""The compiled search of grids: C sources, their build, and the Python side of each entry."""
