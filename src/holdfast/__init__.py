"""Differentially private tables in which everything that must hold, holds exactly."""
