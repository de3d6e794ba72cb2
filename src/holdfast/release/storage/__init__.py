"""Files: written whole or not at all, read with their types."""
