"""One step of a message: two are joined, a leaf is added, an own weight and tails are put on, with proved errors."""
