"""Seconds and bytes as short texts."""

from __future__ import annotations

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B"))


def rounded(number: float) -> float:
    """Return a number with two digits.

    >>> rounded(2437), rounded(0.456)
    (2400.0, 0.46)
    """
    return float(f"{number:.1e}")


def seconds_text(seconds: float) -> str:
    """Return a time with its unit.

    >>> seconds_text(0.1), seconds_text(0.0123), seconds_text(1234.5)
    ('0.1 s', '12 ms', '1,200 s')
    """
    return f"{rounded(seconds):.2g} s" if 0.0999 < seconds < 1 else _with_unit(seconds, _TIMES)


def bytes_text(number: float) -> str:
    """Return a number of bytes with its unit.

    >>> bytes_text(1_638_400_000), bytes_text(200)
    ('1.6 GB', '200 B')
    """
    return _with_unit(number, _SIZES)


def _with_unit(number: float, units: tuple[tuple[float, str], ...]) -> str:
    size, name = next((unit for unit in units if rounded(number) >= unit[0]), units[-1])
    value = rounded(number / size)
    return f"{value:,.0f} {name}" if value >= 10 else f"{value:g} {name}"
