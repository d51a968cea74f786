"""picture -> puzzle and truth: Met-Sweep, the damage generator. Not named cut, which is a function of jigsync."""
