"""Poses without a grid: the solver `free` and its parts."""
