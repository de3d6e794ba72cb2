"""On Linear Refinement, item by item."""
