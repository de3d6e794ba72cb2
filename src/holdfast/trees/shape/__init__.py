"""A hierarchy as arrays: its shape, its order, ties, and whether a law on it is proper."""
