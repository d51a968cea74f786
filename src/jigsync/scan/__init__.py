"""One scan of many fragments on a plain background -> puzzle."""
