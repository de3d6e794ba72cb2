"""The k-norm mechanism: its body, and uniform draws from it."""
