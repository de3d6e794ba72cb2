"""Hierarchies under normal laws: messages of a mean and a variance, and cubes in every area that decouple."""
