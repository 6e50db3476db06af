"""Classical and trivial methods on NumPy and scikit-learn: the field to beat.  No torch."""
