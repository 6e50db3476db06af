"""Help for tests of this package and of estimators built on it; needs the extra ``test``."""
