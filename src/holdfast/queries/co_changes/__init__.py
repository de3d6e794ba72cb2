"""Records that can change together while equalities stay: which, by how much, and how many a column needs."""
