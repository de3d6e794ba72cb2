"""The ways to compute `onto`, and its privacy statement."""
