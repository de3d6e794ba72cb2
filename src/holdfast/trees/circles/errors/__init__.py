"""Laws of outputs and of weighted sums, from the same messages: standard errors and intervals."""
