"""Null spaces with structure: hierarchies, cubes, leaves."""
