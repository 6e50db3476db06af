"""Networks on bags: ragged operations, encoders, heads with and without a graph, losses."""

from baggraph.nn.dropout import Dropout
from baggraph.nn.encoders import (
    Attention,
    DeepSets,
    GatedAttention,
    MINet,
    MiNet,
    MINetDeepSupervision,
    MINetResidual,
    ResPool,
    RffPool,
    SetTransformer,
    encoder,
)
from baggraph.nn.gcn import GraphConvolution, Propagation
from baggraph.nn.heads import Head, PassHead
from baggraph.nn.losses import AbstractLoss, BinaryCrossEntropy, CrossEntropy, Gaussian, SquaredError
from baggraph.nn.network import Forward, Network
from baggraph.nn.own_neighbors import OwnNeighbors
from baggraph.nn.ragged import (
    segment_logsumexp,
    segment_max,
    segment_mean,
    segment_softmax,
    segment_std,
    segment_sum,
    spread,
)

__all__ = [
    "AbstractLoss",
    "Attention",
    "BinaryCrossEntropy",
    "CrossEntropy",
    "DeepSets",
    "Dropout",
    "Forward",
    "GatedAttention",
    "Gaussian",
    "GraphConvolution",
    "Head",
    "MINet",
    "MINetDeepSupervision",
    "MINetResidual",
    "MiNet",
    "Network",
    "OwnNeighbors",
    "PassHead",
    "Propagation",
    "ResPool",
    "RffPool",
    "SetTransformer",
    "SquaredError",
    "encoder",
    "segment_logsumexp",
    "segment_max",
    "segment_mean",
    "segment_softmax",
    "segment_std",
    "segment_sum",
    "spread",
]
