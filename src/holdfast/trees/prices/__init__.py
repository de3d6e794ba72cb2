"""What bounds on a hierarchy cost."""
