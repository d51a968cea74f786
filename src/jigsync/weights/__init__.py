"""Trained weights, each with its card (data, licence, seed, command, time, numbers, sha256) and golden tensors."""
