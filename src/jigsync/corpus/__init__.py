"""Many pictures and many puzzles: picture sets, manifests, shards, and the pools that make them."""
