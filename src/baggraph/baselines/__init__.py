"""Classical and trivial methods on NumPy, SciPy and scikit-learn: the field to beat.  No torch.

Names load on first use.  ``make`` gives a method by the name that papers print.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "AverageKernelSVM": "average_kernel",
    "BagMarginSVM": "bag_margin_svm",
    "BagMeanGP": "gaussian_process",
    "CoordinateGP": "gaussian_process",
    "DistributionRegression": "distribution_regression",
    "EMDD": "em_dd",
    "FisherVectorSVM": "mi_fv",
    "InstanceMarginSVM": "instance_margin_svm",
    "LabelPropagationClassifier": "label_propagation",
    "LabelPropagationRegressor": "label_propagation",
    "MIGraph": "mi_graph",
    "MIKernel": "mi_kernel",
    "MILES": "miles",
    "MajorityClassifier": "constant",
    "MeanRegressor": "constant",
    "NeighborMeanClassifier": "neighbor_mean",
    "NeighborMeanRegressor": "neighbor_mean",
    "OneNumberClassifier": "one_number",
    "OneNumberRegressor": "one_number",
    "SummaryRidge": "summary_ridge",
    "SummarySVM": "summary_svm",
    "VladSVM": "mi_vlad",
    "make": "printed",
    "printed_names": "printed",
    "summarise": "summary",
}

__all__ = sorted(_HOME)

if TYPE_CHECKING:
    from baggraph.baselines.average_kernel import AverageKernelSVM as AverageKernelSVM
    from baggraph.baselines.bag_margin_svm import BagMarginSVM as BagMarginSVM
    from baggraph.baselines.constant import MajorityClassifier as MajorityClassifier
    from baggraph.baselines.constant import MeanRegressor as MeanRegressor
    from baggraph.baselines.distribution_regression import DistributionRegression as DistributionRegression
    from baggraph.baselines.em_dd import EMDD as EMDD
    from baggraph.baselines.gaussian_process import BagMeanGP as BagMeanGP
    from baggraph.baselines.gaussian_process import CoordinateGP as CoordinateGP
    from baggraph.baselines.instance_margin_svm import InstanceMarginSVM as InstanceMarginSVM
    from baggraph.baselines.label_propagation import LabelPropagationClassifier as LabelPropagationClassifier
    from baggraph.baselines.label_propagation import LabelPropagationRegressor as LabelPropagationRegressor
    from baggraph.baselines.mi_fv import FisherVectorSVM as FisherVectorSVM
    from baggraph.baselines.mi_graph import MIGraph as MIGraph
    from baggraph.baselines.mi_kernel import MIKernel as MIKernel
    from baggraph.baselines.mi_vlad import VladSVM as VladSVM
    from baggraph.baselines.miles import MILES as MILES
    from baggraph.baselines.neighbor_mean import NeighborMeanClassifier as NeighborMeanClassifier
    from baggraph.baselines.neighbor_mean import NeighborMeanRegressor as NeighborMeanRegressor
    from baggraph.baselines.one_number import OneNumberClassifier as OneNumberClassifier
    from baggraph.baselines.one_number import OneNumberRegressor as OneNumberRegressor
    from baggraph.baselines.printed import make as make
    from baggraph.baselines.printed import printed_names as printed_names
    from baggraph.baselines.summary import summarise as summarise
    from baggraph.baselines.summary_ridge import SummaryRidge as SummaryRidge
    from baggraph.baselines.summary_svm import SummarySVM as SummarySVM


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        from baggraph.errors import closest

        raise AttributeError(f"module 'baggraph.baselines' has no attribute {name!r}; {closest(name, _HOME)}")
    value = getattr(import_module(f"baggraph.baselines.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
