"""Programs in doubles, and how their answers are finished exactly."""
