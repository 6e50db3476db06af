"""Help for tests of this package and of estimators built on it; strategies need the extra ``test``."""

from baggraph.testing.checks import check_bag_estimator

__all__ = ["check_bag_estimator"]
