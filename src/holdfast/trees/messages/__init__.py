"""Exact draws on a hierarchy: messages up, choices down."""
