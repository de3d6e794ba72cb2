"""One draw that cannot be drawn again: committed to before a nonce is given, and re-executed by whoever may see it."""
