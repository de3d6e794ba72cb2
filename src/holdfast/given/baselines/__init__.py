"""Ways that others use, drawn only when they are asked for by name."""
