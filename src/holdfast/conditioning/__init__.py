"""The ways to compute `given`, and its privacy statement."""
