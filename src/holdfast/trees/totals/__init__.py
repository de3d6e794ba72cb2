"""Leaves that are alike given their sum."""
