"""What a stranger checks a release with: one file of the standard library, a copy of which lies in every release."""
