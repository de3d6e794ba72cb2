"""Ways whose draws have exactly the conditional law."""
