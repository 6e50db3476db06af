"""Truth and posteriors to numbers, numbers to comparisons, and doubts about both."""
