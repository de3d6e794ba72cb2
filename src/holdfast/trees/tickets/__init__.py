"""Many draws of a small hierarchy: tables of choices decided by few bits."""
