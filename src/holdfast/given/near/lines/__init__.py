"""Continuous noise given linear constraints: steps along lines."""
