"""Files: pictures and their limits, puzzle folders, shards, GAP."""
