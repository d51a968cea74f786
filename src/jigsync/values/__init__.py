"""What every part speaks of: poses, puzzles, placements, truths, and what a measurement says. No cv2, onnx or scipy."""
