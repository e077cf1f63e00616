"""Show what a budget buys for stratified rows: ``python -m benchmarks.strata``.

For each budget: numbers per tree, trees encoded per second against dense vectors, Spearman's correlation with
the exact kernel by λ, error over the floor of a dense random projection into as many numbers, and the spread
of ‖x‖²/K11. Then what the stages of the encoder take.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.__main__ import encode_seconds, seconds
from benchmarks.fidelity import DECAYS, SOURCES, arguments, measure, sample
from benchmarks.trees import benchmark_forest
from treedot import Forest, SubsetTreeKernel
from treedot.encode import StratifiedEncoder, StratifiedSpec, slots, stratified
from treedot.encode.postings import products
from treedot.encode.spec import MAX_FEATURES
from treedot.jit import njit


def main() -> None:
    options = arguments("strata", __doc__).parse_args()
    for name in SOURCES:
        whole, source = benchmark_forest(options.data, name)
        forest, timed = sample(whole, options.trees), whole[:1000]
        exact = {decay: SubsetTreeKernel(decay).gram(forest) for decay in DECAYS}
        dense = encode_seconds(timed, "mixed")
        print(f"\n{source}: {len(forest)} trees at random, {options.seeds} seeds\n")
        ranks = " | ".join(f"ρ at λ = {decay}" for decay in DECAYS)
        errors = "error over floor at 0.2, 0.4"
        print(f"| budget | numbers | times dense | {ranks} | {errors} | norm² at 0.4 | at 1 |")
        print("|---" * (6 + len(DECAYS)) + "|")
        for budget in (2, 4, 6, 7, 8, 9, 10, 11, 12, 14):
            encoder = StratifiedEncoder(StratifiedSpec(budget=budget))
            took = seconds(partial(encoder.encode, timed, n_jobs=1))
            found = []
            for decay in DECAYS:
                rows = [
                    StratifiedEncoder(
                        StratifiedSpec(MAX_FEATURES, decay, budget, seed, dtype="float64")
                    ).encode(forest)
                    for seed in range(options.seeds)
                ]
                numbers = float(np.mean([x.nnz for x in rows])) / len(forest)
                found.append(measure(exact[decay], map(products, rows), numbers))
            cells = [f"{budget}", f"{numbers:.0f}", f"{dense / took:.1f}"]
            cells += [f"{at.rank:.4f}" for at in found]
            cells += [f"{found[0].error:.3f}, {found[1].error:.3f}"]
            cells += [spread(at.norms) for at in (found[1], found[-1])]
            print(f"| {' | '.join(cells)} |", flush=True)
        print(f"\nus per tree: dense {1e6 * dense / len(timed):.1f}; {stages(timed)}")


def spread(values: np.ndarray) -> str:
    """Return the median, and between which values nine tenths lie."""
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    return f"{middle:.2f} ({low:.2f}, {high:.2f})"


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
