"""Counts in the areas of a hierarchy: of all records, of categories, or margins of a cube in every area."""
