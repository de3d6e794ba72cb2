"""How many records must change together before a value of a column can become another."""
