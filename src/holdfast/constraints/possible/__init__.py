"""Whether what must hold can hold: bounds propagated, contradictions proved."""
