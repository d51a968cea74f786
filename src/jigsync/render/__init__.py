"""placement -> pictures."""
