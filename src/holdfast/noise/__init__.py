"""Laws of noise, with exact draws for the integer ones."""
