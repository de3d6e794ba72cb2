"""Exact draws on a hierarchy: messages on circles, divisions by tilted rejection, one test (docs/theory/circles.md)."""
