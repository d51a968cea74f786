"""image -> puzzle: Met-Sweep, the damage generator."""
