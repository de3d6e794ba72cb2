"""A hierarchy cut into pieces that are drawn apart, by one process or by a cluster, and make one and the same table."""
