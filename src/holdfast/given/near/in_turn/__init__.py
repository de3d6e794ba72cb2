"""Integer noise given equalities, one free cell after another."""
