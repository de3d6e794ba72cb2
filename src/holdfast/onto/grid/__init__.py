"""The grid on which moved values are finished exactly, and the check of what a solver proposed."""
