"""The ways to move noisy values onto what must hold."""
