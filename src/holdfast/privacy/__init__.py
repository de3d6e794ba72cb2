"""Guarantees: their words and numbers, calibration, composition."""
