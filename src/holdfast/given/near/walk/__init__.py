"""Integer noise given any linear constraint: walks on whole vectors."""
