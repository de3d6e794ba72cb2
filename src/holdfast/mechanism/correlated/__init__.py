"""Noise whose outputs hang together, by a law that was made for what is asked and not for exact figures."""
