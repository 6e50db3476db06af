"""The learned graph in several processes, each of which owns a range of the bags.

    torchrun --nproc-per-node 4 -m baggraph.graphs.distributed embeddings.npy -o edges/ -k 10 -r 3 --tol 1e-4

A process searches the neighbours of its own bags, holds their rows of candidates, and sweeps over these.  In every
sweep it receives the potentials of the bags that its rows point to elsewhere, and sums of the duality gap.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from baggraph.data._graph_tables import write_parquet
from baggraph.errors import BagError, BagWarning, DataFileError, InvalidGraphError, ParameterError
from baggraph.graphs import _solve
from baggraph.graphs._candidates import Candidates, _starts
from baggraph.graphs._gap import measure, relative
from baggraph.graphs._problem import Problem, embeddings
from baggraph.graphs._rows import Rows, build
from baggraph.graphs._team import Team
from baggraph.graphs._theta import K1_FACTOR, _bound
from baggraph.graphs._weights import weights
from baggraph.graphs.learned import LearnedGraph
from baggraph.graphs.neighbors import nearest
