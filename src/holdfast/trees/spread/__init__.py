"""Errors on a hierarchy before any data is seen: marginal laws, sums, free leaves."""
