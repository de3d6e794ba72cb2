"""Subspace Differential Privacy, item by item."""
