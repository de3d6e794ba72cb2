"""Noise given a union: the weights of its sides, and a draw from one of them."""
