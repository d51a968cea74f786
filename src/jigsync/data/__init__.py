"""Pictures that ship with the package; ORIGIN.md names where they come from."""
