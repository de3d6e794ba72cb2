"""Small problems solved in rationals, and whole points near them."""
