"""Narrow integer noise in few dimensions: all likely points are listed."""
