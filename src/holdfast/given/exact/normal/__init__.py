"""Gaussian noise given equalities alone: normal laws stay normal."""
