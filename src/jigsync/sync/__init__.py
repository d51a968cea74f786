"""measurements -> placement: synchronization and joint refinement."""
