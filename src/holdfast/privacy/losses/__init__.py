"""Laws of privacy loss: Gaussian, integer Gaussian, Rényi, and how they add up."""
