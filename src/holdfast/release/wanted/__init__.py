"""The other way round: which errors are wanted, whether a plan meets them, and at which budget and split it would."""
