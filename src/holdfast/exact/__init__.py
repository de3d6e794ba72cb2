"""Whole numbers and rationals: solvers propose, rationals prove."""
