"""Where random bits come from: a secure stream, a seeded one, and keyed substreams."""
