"""Mend a tree that grew wrong: take off the subtrees that fit worst, and let it grow again."""

from __future__ import annotations

import math

import numpy as np

from treedot.vectors.decoding.draft import Node
from treedot.vectors.decoding.growth import STEPS, Growth

ROUNDS = 12
MISFIT = 2.5  # standard errors below 0, where a subtree in its place should explain its weight


def repair(growth: Growth) -> None:
    """Take off subtrees that fit badly, hang them where they fit, and keep the result if it is better."""
    for attempt in range(ROUNDS):
        if growth.distance <= growth.same or growth.steps >= STEPS:
            return
        before, distance = [piece.copy() for piece in growth.pieces], growth.distance
        for node in _misfits(growth, attempt):
            if node.parent is not None:
                node.detach(Node(node.label))
                growth.pieces.append(node)
        growth.trusts_guess = attempt % 2 == 1
        growth.measure()
        growth.grow()
        growth.trusts_guess = False
        if growth.distance >= distance:
            growth.pieces = before
            growth.measure()


def _misfits(growth: Growth, attempt: int) -> list[Node]:
    """Return nodes whose place explains little, and nodes with labels of leftover productions."""
    missing = np.flatnonzero(growth.counts > 0.5).tolist()
    left_over = {growth.candidates.parents[i] for i in missing} | {piece.label for piece in growth.pieces[1:]}
    fits = sorted(_fits(growth), key=lambda fit: fit[0])
    same_label = [node for _, node in fits if node.label in left_over]
    if attempt == 0:
        return [node for fit, node in fits if fit < -MISFIT * growth.noise] + same_label
    worst = [node for _, node in fits[: 2 * attempt]]
    return worst + same_label if attempt % 2 else worst


def _fits(growth: Growth) -> list[tuple[float, Node]]:
    """Return how much of the rest each subtree explains in its place; the noise in it is that of a count."""
    fits = []
    for slope in growth.slopes():
        node = slope.node
        if node.children and node.parent is not None:
            found = float((slope.gradient - growth.rest) @ node.vector) / growth.scale
            fits.append((found / math.sqrt((slope.weight - 1) * node.delta), node))
    return fits


def drop_pieces(growth: Growth) -> None:
    """Keep only the piece with the root, if that explains the vector better."""
    before, distance = growth.pieces, growth.distance
    growth.pieces = before[:1]
    growth.measure()
    if growth.distance > distance:
        growth.pieces = before
        growth.measure()
