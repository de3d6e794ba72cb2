"""Ways whose draws come near the conditional law, within a distance that is stated."""
