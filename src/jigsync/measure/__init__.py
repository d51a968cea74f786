"""puzzle -> measurements: how pairs of fragments relate."""
