"""What records can change together while equalities stay, and by how much."""
