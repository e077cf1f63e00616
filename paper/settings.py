"""How much is measured: the full run, the quick one that shows the same in minutes, and the sample."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

DECAYS = (0.2, 0.4, 0.6, 0.8, 1.0)
SIZE = 8192


@dataclass(frozen=True)
class Settings:
    """The sizes of all experiments; None is everything there is."""

    quick: bool = False
    decays: tuple[float, ...] = DECAYS
    seeds: int = 3
    samples: int = 100  # of every composition in Fig. 2, as in the paper
    fragments: int = 3000
    trees: int = 300  # all pairs of so many trees are compared in Table 2
    table_seeds: int = 5
    sizes: tuple[int, ...] = (1024, 2048, 4096, SIZE, 16384)
    questions: int | None = None
    fine: bool = True
    kept_fragments: int = 10_000
    pairs: int | None = None
    costs: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    folds: int = 3
    timed_pairs: int = 100
    sample: bool = False  # trees that need no download

    def described(self) -> dict[str, Any]:
        """Return the settings by name; without ``sample`` where it is not set, as older results have it."""
        return {name: value for name, value in asdict(self).items() if name != "sample" or value}


QUICK = Settings(
    quick=True,
    decays=(0.2, 0.4, 1.0),
    seeds=1,
    samples=20,
    fragments=500,
    trees=100,
    table_seeds=2,
    sizes=(1024, SIZE),
    questions=800,
    fine=False,
    kept_fragments=1000,
    pairs=70,
    costs=(1.0, 10.0),
    folds=2,
    timed_pairs=20,
)
FULL = Settings()
SAMPLE = replace(QUICK, sample=True, samples=100, questions=None, pairs=40)
