"""What must hold: linear systems with an origin, their null spaces and lattices."""
