"""The exact draw on a hierarchy in plain numpy, for trees of some thousand outputs: the first thing to read here."""
