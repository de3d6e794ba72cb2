"""What a reader has: the certificate of a release, its check, and the published files."""
