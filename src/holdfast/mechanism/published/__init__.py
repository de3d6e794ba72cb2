"""What may be published with a table and computed from it: error bars, and synthetic records."""
