"""Several agents who each hold a part of the records and share a secret."""
