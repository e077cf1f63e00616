"""Show what a budget buys for stratified rows: ``python -m benchmarks.strata``.

For each budget: numbers per tree, trees encoded per second against dense vectors, Spearman's correlation with
the exact kernel by λ, error over the floor of a dense random projection into as many numbers, and the spread
of ‖x‖²/K11. Then what the stages of the encoder take.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.__main__ import encode_seconds, seconds
from benchmarks.trees import benchmark_forest
from treedot import Forest, SubsetTreeKernel, sparse_gram
from treedot.encode import StratifiedEncoder, StratifiedSpec, slots, stratified
from treedot.experiments.fidelity import error_over_floor, norm_ratios, spearman
from treedot.jit import njit

DECAYS = (0.2, 0.4, 0.6, 0.8, 1.0)
WIDE = 2**30

FloatArray = npt.NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strata", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in ("questions", "Penn sentences"):
        whole, source = benchmark_forest(options.data, name)
        forest = whole[np.random.default_rng(0).choice(len(whole), options.trees, replace=False)]
        exact = {decay: SubsetTreeKernel(decay).gram(forest) for decay in DECAYS}
        timed = whole[:1000]
        dense = encode_seconds(timed, "mixed")
        print(f"\n{source}: {len(forest)} trees at random, {options.seeds} seeds\n")
        ranks = " | ".join(f"ρ at λ = {decay}" for decay in DECAYS)
        print(f"| budget | numbers | times dense | {ranks} | error over floor at 0.4 | norm² at 0.4 | at 1 |")
        print("|---" * (6 + len(DECAYS)) + "|")
        for budget in (2, 4, 6, 7, 8, 9, 10, 11, 12, 14):
            encoder = StratifiedEncoder(StratifiedSpec(budget=budget))
            took = seconds(partial(encoder.encode, timed, n_jobs=1))
            found = [measure(forest, exact[decay], decay, budget, options.seeds) for decay in DECAYS]
            cells = [f"{budget}", f"{found[0].numbers:.0f}", f"{dense / took:.1f}"]
            cells += [f"{at.rank:.4f}" for at in found]
            cells += [f"{found[1].error:.3f}", found[1].norms, found[-1].norms]
            print(f"| {' | '.join(cells)} |", flush=True)
        print(f"\nus per tree: dense {1e6 * dense / len(timed):.1f}; {stages(timed)}")


class Measured(NamedTuple):
    """Means over seeds; the norms are the median (5 %, 95 %) of ‖x‖²/K11."""

    numbers: float
    rank: float
    error: float
    norms: str


def measure(forest: Forest, exact: FloatArray, decay: float, budget: int, seeds: int) -> Measured:
    ranks, errors, norms = [], [], []
    for seed in range(seeds):
        rows = StratifiedEncoder(StratifiedSpec(WIDE, decay, budget, seed, dtype="float64")).encode(forest)
        numbers = rows.nnz / len(forest)
        estimate = sparse_gram(rows)
        ranks.append(spearman(exact, estimate))
        errors.append(error_over_floor(exact, estimate, numbers) ** 2)
        norms.append(norm_ratios(exact, estimate))
    low, middle, high = np.quantile(norms, (0.05, 0.5, 0.95))
    spread = f"{middle:.2f} ({low:.2f}, {high:.2f})"
    return Measured(numbers, float(np.mean(ranks)), float(np.sqrt(np.mean(errors))), spread)


def stages(forest: Forest) -> str:
    """Return the time of what the encoder does one after the other, with the default budget."""
    encoder = StratifiedEncoder(StratifiedSpec())
    size = int(forest.sizes.max())
    room = stratified.make_room(slots.make_below(size, size), 1 << 14)
    indices = np.empty(1 << 17, np.int32)
    keys = encoder._label_keys(forest.labels)
    columns = forest.offsets, forest.arity, forest.label, keys
    rest = encoder._rules, encoder._tables, room, indices
    prefixes = _run(3, *columns, *rest) / len(forest)
    took = [0.0, *(seconds(partial(_run, stage, *columns, *rest)) for stage in (1, 2, 3))]
    took.append(seconds(partial(encoder.encode, forest, n_jobs=1)))
    names = ("below nodes", "prefixes and tails", "columns", "the rest")
    parts = zip(names, took[:-1], took[1:], strict=True)
    times = ", ".join(f"{name} {1e6 * (b - a) / len(forest):.1f}" for name, a, b in parts)
    return f"{prefixes:.0f} prefixes: {times}"


@njit
def _run(
    last: int,
    offsets: Any,
    arity: Any,
    label: Any,
    keys: Any,
    rules: Any,
    tables: Any,
    room: Any,
    indices: Any,
) -> int:
    """Encode without keeping anything, up to some stage; return the number of prefixes."""
    found = 0
    for tree in range(offsets.size - 1):
        here = slice(offsets[tree], offsets[tree + 1])
        slots.fill_below(
            arity[here], label[here], keys, rules.budget, tables.phases, tables.shuffle, room.below
        )
        if last > 1:
            count, _, scale = stratified._find_prefixes(here.stop - here.start, rules.budget, room)
            found += count
            if last > 2:
                stratified._write_row(count, scale, rules, tables, room, indices)
    return found


if __name__ == "__main__":
    main()
