"""One interface, one registry: every way to reassemble a puzzle."""
