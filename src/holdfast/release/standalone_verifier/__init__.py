"""The rule book of releases: a verifier of the standard library alone, a copy of which lies in every release."""
