"""How integer noise is drawn exactly: random bits compared with rigorous bounds."""
