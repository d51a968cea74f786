"""`jigsync eval`: predictions into a cache, scores out of it, tables and a report out of those."""
