"""What a published table says: its figures, its labels, and which labels add up to which."""
