"""Who may sit in the committee for classes, and who does unless others are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from baggraph.errors import ParameterError, closest
from baggraph.estimators._auto_members import (
    AbstractMember,
    Instances,
    KernelMachine,
    KernelProcess,
    Spreading,
    Trees,
)
from baggraph.estimators._auto_networks import NetworkMember

STANDARD: dict[str, AbstractMember] = {
    "average kernel": KernelMachine("kernel"),
    "distance rows": KernelMachine("distance_kernel"),
    "trees": Trees(),
    "instances": Instances(),
    "neighbours": Spreading(known=False),
    "known graph": Spreading(known=True),
}
OPTIONAL: dict[str, AbstractMember] = {
    "kernel process": KernelProcess(),
    "network": NetworkMember("linear", uses_graph=False),
    "bag graph": NetworkMember("gcn", uses_graph=True),
}
MEMBERS = STANDARD | OPTIONAL
GROUPS = {"standard": STANDARD, "all": MEMBERS}


def asked_members(stage: str, asked: Sequence[str] | str, *, graph: bool) -> dict[str, AbstractMember]:
    """Members by name, or those of a group; what sees the known graph sits only where there is one."""
    if isinstance(asked, str):
        if asked not in GROUPS:
            remedy = closest(asked, GROUPS) + "; names of members come as a list"
            expected = f"members {', '.join(GROUPS)} or a list"
            raise ParameterError(stage, expected=expected, got=repr(asked), remedy=remedy)
        names = list(GROUPS[asked])
    else:
        names = list(asked)
    for name in names:
        if name not in MEMBERS:
            remedy = closest(str(name), MEMBERS)
            raise ParameterError(stage, expected="names of members", got=repr(name), remedy=remedy)
    found = {name: MEMBERS[name] for name in names if graph or name != "known graph"}
    if not any(not member.uses_graph for member in found.values()):
        got, remedy = repr(asked), "add 'average kernel'"
        raise ParameterError(stage, expected="a member without a graph", got=got, remedy=remedy)
    return found
