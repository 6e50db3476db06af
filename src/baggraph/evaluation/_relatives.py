"""Sets of the registry that stem from the same source as some bags."""

from __future__ import annotations

from baggraph import datasets
from baggraph.data.bags import Bags

MOST = 5  # members of a larger family are not read for every audit of one of them


def relatives(bags: Bags) -> dict[str, Bags]:
    """Other sets with the citation and the features of the one that these bags come from, if their files are here.

    >>> relatives(Bags([[0.0]], [0, 1]))
    {}
    """
    name = bags.metadata.get("name")
    if name not in datasets.names():
        return {}
    own = datasets.card(name)
    cards = [datasets.card(other) for other in datasets.names() if other != name]
    kin = [card for card in cards if card.citation == own.citation and card.counts.features == own.counts.features]
    if len(kin) > MOST:
        return {}
    return {card.name: datasets.load(card.name) for card in kin if datasets.state(card) == "here"}
