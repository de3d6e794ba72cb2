"""Checking a table in runs: part after part, in the memory of one and of the values of all."""
