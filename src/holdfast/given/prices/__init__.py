"""What conditioning on inequalities costs: the ratio of the probabilities of what must hold."""
