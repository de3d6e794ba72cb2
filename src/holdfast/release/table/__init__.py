"""The public side of a table: its domain, its figures and what must hold in it."""
