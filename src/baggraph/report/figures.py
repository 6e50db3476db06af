"""Figures of the paper and of an honest evaluation; each has ``frame()``, the numbers that it shows."""

from baggraph.report._figure import Figure
from baggraph.report._maps import graph_drawing, region_map
from baggraph.report._ranks import critical_difference, rank_box, ranks_of
from baggraph.report._uncertainty import label_curve, reliability_diagram

__all__ = [
    "Figure",
    "critical_difference",
    "graph_drawing",
    "label_curve",
    "rank_box",
    "ranks_of",
    "region_map",
    "reliability_diagram",
]
