"""Whole noise on the lattice of a null space."""
