"""Grow the tree that a vector encodes from its root, by the productions that explain most of the vector.

Let T be the vector of the tree so far, and r = v - α T the rest of v. Two things say whether a production q
belongs at a leaf. ``⟨r, f(q)⟩ / α`` estimates how many q are still missing. ``√λ ⟨g, f(q)⟩ / α``, where g is
the gradient of ``⟨r, T⟩`` with respect to the leaf's vector, estimates a weight that is known (see
``draft``) if q is there, and 0 if it is not. Both have the noise ``‖r‖ / √d``, the second one times the root
of its weight. So likelihoods decide. As the tree grows, weights increase and the rest shrinks, which makes
decisions safer: the safest ones are made first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from treedot._runtime.array_types import Row
from treedot.vectors.decoding.candidates import WITHIN, Candidates, guessed_scale
from treedot.vectors.decoding.draft import Composer, Node, Slope

SAFE = 10.0  # the least difference of log-likelihoods between the best choice at a leaf and the next one
UNLIKELY = -20.0  # the log-likelihood, against leaving it a leaf, below which a leaf is not expanded
AMBIGUOUS = 30.0  # the difference of log-likelihoods below which both of two choices may be in the tree
PRESENT = 0.5  # the least count of what is there
SURELY = 4.0  # the least count, in standard errors, of what begins a piece
MOSTLY = 0.5  # the share of a vector's square from which the explained part alone gives the scale
NEARLY = 0.9999  # the same where the guess is trusted
STEPS = 150  # most steps of all growth for one vector
LARGE = 200  # nodes for which a step counts twice
PIECES = 200  # most pieces beside the tree


class Choice(NamedTuple):
    """What to do at a leaf: expand it by a candidate, or hang a piece there."""

    node: Node
    candidate: int
    piece: Node | None
    safety: float


class Growth:
    """Pieces of a tree that grow to explain a vector; the first one contains the root.

    Parameters
    ----------
    vector : array
        The vector v.
    candidates : Candidates
        The productions to choose from.
    composer : Composer
        The composition, and the vectors of labels.
    scale : float or None
        The factor α of the vector, None if it is unknown.
    same : float
        The distance, over the norm of the vector, at which nothing is left to explain.
    """

    def __init__(
        self, vector: Row, candidates: Candidates, composer: Composer, scale: float | None, same: float
    ) -> None:
        self.vector, self.candidates, self.composer, self.known_scale = vector, candidates, composer, scale
        self.same = same
        self.norm = float(np.linalg.norm(vector))
        self.pieces: list[Node] = []
        self.steps = 0
        self.trusts_guess = False
        self._pruned_at = math.inf
        if scale is None:
            counts = candidates.vectors @ vector
            self._guess, self._ones = guessed_scale(counts, candidates.at_root)
        self.measure()

    def measure(self) -> None:
        """Compute what is left of the vector, the noise in estimated counts, and the counts."""
        total = np.zeros_like(self.vector)
        for order in self.orders():
            self.composer.update(order)
            for node in order:
                if node.s is not None:
                    total += node.s
        self.scale = self._fitted(total)
        self.rest = self.vector - np.float32(self.scale) * total
        self.distance = self._distance(total)
        self.noise = max(self.distance, self.same) * self.norm / math.sqrt(self.vector.size) / self.scale
        self.counts = self.candidates.vectors @ self.rest / np.float32(self.scale)

    def _distance(self, total: Row) -> float:
        """Return the norm of what a sum of fragments leaves unexplained, over that of the vector."""
        rest, square = self.rest, float(total @ total)
        if self.known_scale is None and square > 0:
            rest = self.vector - np.float32(float(self.vector @ total) / square) * total
        distance = float(np.linalg.norm(rest)) / self.norm
        return distance if math.isfinite(distance) else math.inf

    def _fitted(self, total: Row) -> float:
        """Return the factor of the vector: the known one, or the best for a sum of fragments.

        The best factor of a small sum is uncertain, so the counts of productions decide, too: most are 1. If
        missing fragments are like those found, the best factor is too large: ``trusts_guess`` avoids it.
        """
        if self.known_scale is not None:
            return self.known_scale
        square, product = float(total @ total), float(self.vector @ total)
        if self.trusts_guess and product * product < NEARLY * square * self.norm**2:
            return self._guess
        if product <= 0 or product * product < MOSTLY * square * self.norm**2:
            product, square = product + self._ones * self._guess, square + self._ones
        return product / square if product > 0 and square > 0 else self._guess

    def orders(self) -> list[list[Node]]:
        """Return the nodes of each piece, parents first."""
        return [piece.preorder() for piece in self.pieces]

    def slopes(self) -> list[Slope]:
        """Return the slopes of all nodes."""
        return [slope for order in self.orders() for slope in self.composer.slopes(order, self.rest)]

    def start(self, candidate: int) -> None:
        """Add a piece: a root with the children of a candidate."""
        root = Node(self.candidates.parents[candidate])
        self._expand(root, candidate)
        self.pieces.append(root)
        self.measure()

    def roots(self) -> list[int]:
        """Return the candidates that may be the root's production, the likeliest first."""
        likely = self.candidates.at_root & (self.counts > PRESENT)
        order = np.argsort(-self.counts, kind="stable")
        return [int(i) for i in order if likely[i]]

    def add_pieces(self) -> None:
        """Grow further pieces from productions that occur but have no place in the tree."""
        while self.steps < STEPS + PIECES and self.counts.size:
            candidate, before = int(self.counts.argmax()), self.distance
            if self.counts[candidate] < max(PRESENT, SURELY * self.noise):
                break
            self.steps += 1
            self.start(candidate)
            if self.distance >= before:
                self.pieces.pop()
                self.measure()
                break

    def _expand(self, node: Node, candidate: int) -> None:
        node.expand(int(self.candidates.number[candidate]), self.candidates.children[candidate])

    def grow(self) -> None:
        """Expand leaves for as long as an expansion explains more of the vector."""
        refused: set[tuple[Node, Node | int]] = set()
        cautious = False
        while self.distance > self.same and self.steps < STEPS:
            self.steps += 1 + sum(map(len, self.orders())) // LARGE
            self._prune()
            choices = [choice for choice in self.choices() if self._key(choice) not in refused]
            choices.sort(key=lambda choice: -choice.safety)
            safe = [choice for choice in choices if choice.safety >= SAFE and not cautious]
            before = self.distance
            taken = [choice for choice in safe or choices[:1] if self._take(choice)]
            self.measure()
            if not taken:
                break
            cautious = self.distance >= before
            if cautious:
                self._undo(taken)
                refused.update(self._key(choice) for choice in taken if len(taken) == 1)

    def _key(self, choice: Choice) -> tuple[Node, Node | int]:
        """Return a key that identifies a choice while its leaf exists."""
        return choice.node, choice.piece or int(self.candidates.number[choice.candidate])

    def _prune(self) -> None:
        """From time to time, as the noise falls, drop candidates that are certainly absent."""
        if len(self.candidates.parents) > 50 and self.noise < self._pruned_at / 1.3:
            self._pruned_at = self.noise
            used = [node.production for order in self.orders() for node in order if node.children]
            keep = (self.counts > 1 - WITHIN * self.noise) | np.isin(self.candidates.number, used)
            self.candidates = self.candidates.taken(np.flatnonzero(keep))
            self.counts = self.counts[keep]

    def _take(self, choice: Choice) -> bool:
        """Expand a leaf, unless too little is left of the production; return whether that was done."""
        if choice.piece is not None:
            if choice.piece not in self.pieces or choice.piece in choice.node.ancestors():
                return False
            choice.node.replace(choice.piece)
            self.pieces.remove(choice.piece)
            return True
        if self.counts[choice.candidate] < 1 - max(0.5, WITHIN * self.noise):
            return False
        self.counts[choice.candidate] -= 1
        self._expand(choice.node, choice.candidate)
        return True

    def _undo(self, choices: list[Choice]) -> None:
        for choice in choices:
            if choice.piece is None:
                choice.node.collapse()
            else:
                choice.piece.detach(choice.node)
                self.pieces.append(choice.piece)
        self.measure()

    def choices(self) -> list[Choice]:
        """Return the best way to expand each leaf where something is found."""
        by_label = defaultdict(list)
        for slope in self.slopes():
            node = slope.node
            if not node.children and node.label in self.candidates.span:
                by_label[node.label].append(slope)
        return [choice for label, slopes in by_label.items() for choice in self._of_label(label, slopes)]

    def _of_label(self, label: str, slopes: list[Slope]) -> list[Choice]:
        """Return the most likely choice at each leaf with a label."""
        span = self.candidates.span[label]
        support = self._likelihood(slopes, self.candidates.vectors[span], np.ones(span.stop - span.start))
        support += self._presence(span)[:, None]
        pieces = [piece for piece in self.pieces[1:] if piece.label == label]
        if pieces:
            s, delta = (
                np.stack([piece.vector for piece in pieces]),
                np.array([piece.delta for piece in pieces]),
            )
            support = np.concatenate([support, self._likelihood(slopes, s, delta)])
        return [
            self._choice(slope.node, likelihood, span, pieces)
            for slope, likelihood in zip(slopes, support.T, strict=True)
            if likelihood.max() > UNLIKELY
        ]

    def _choice(self, node: Node, likelihood: Row, span: slice, pieces: list[Node]) -> Choice:
        """Return the most likely choice at a leaf; of several likely ones, the one that opens most places."""
        row = int(likelihood.argmax())
        top = float(likelihood[row])
        (likely,) = np.nonzero(likelihood > max(top - AMBIGUOUS, 0.0))
        if likely.size > 1:
            options = likely.tolist()
            opened = [self._opened(i + span.start, i + span.start - span.stop, pieces) for i in options]
            row = max(zip(opened, likelihood[likely].tolist(), options, strict=True))[2]
        likelihood[row] = 0  # to leave it a leaf
        piece = None if row + span.start < span.stop else pieces[row + span.start - span.stop]
        return Choice(node, row + span.start, piece, top - float(likelihood.max()))

    def _opened(self, candidate: int, piece: int, pieces: list[Node]) -> int:
        """Return how many missing candidates a choice makes a place for, directly or through each other."""
        if piece < 0:
            labels = set(self.candidates.children[candidate])
        else:
            labels = {node.label for node in pieces[piece].preorder() if not node.children}
        waiting, reached = list(labels), 0
        missing = np.flatnonzero(self.counts > 0.5).tolist()
        while waiting:
            label = waiting.pop()
            for i in missing:
                if self.candidates.parents[i] == label:
                    reached += 1
                    new = set(self.candidates.children[i]) - labels
                    labels |= new
                    waiting.extend(new)
        return reached

    def _likelihood(self, slopes: list[Slope], vectors: Row, squares: Row) -> Row:
        """Return the log-likelihood that vectors of given squared norms are there, one column per leaf."""
        links = np.stack([slope.gradient - self.rest for slope in slopes])
        weights = squares[:, None] * [slope.weight - 1 for slope in slopes]
        found: Row = (2 / self.scale * (vectors @ links.T) - weights) / (2 * self.noise**2)
        return found

    def _presence(self, span: slice) -> Row:
        """Return the log-likelihood that one more of each candidate is there, at most 0."""
        left = self.counts[span]
        near = np.maximum(np.round(left), 0)
        likelihood: Row = ((left - near) ** 2 - (left - np.maximum(near, 1)) ** 2) / (2 * self.noise**2)
        return likelihood
