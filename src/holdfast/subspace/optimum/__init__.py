"""The least error over all Gaussian laws, with a gap as evidence."""
