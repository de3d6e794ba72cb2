"""The public shape of a table: hierarchies, cubes, names."""
