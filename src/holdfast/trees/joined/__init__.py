"""A hierarchy drawn in parts that lie apart: what subtrees tell about their roots, and the top drawn from that."""
