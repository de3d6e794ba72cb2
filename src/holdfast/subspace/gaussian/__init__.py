"""Gaussian laws on a null space: dense, projected, correlated, optimal."""
