"""Continuous Laplace noise given equalities: Gibbs draws on its scale mixture."""
