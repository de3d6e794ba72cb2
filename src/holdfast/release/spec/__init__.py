"""The document that a curator writes, with the line of everything in it."""
