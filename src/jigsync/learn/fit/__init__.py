"""Numbers that are fitted without a gradient of torch: calibration, the gauge's weight, confidence, mixing."""
