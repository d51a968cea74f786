"""Scores, studies and tables."""
