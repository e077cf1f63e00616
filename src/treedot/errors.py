"""The errors that treedot raises: each says what was wrong, where, and what to do."""

from __future__ import annotations


class TreedotError(Exception):
    """Base of every error that treedot raises on purpose."""


class ParameterError(TreedotError, ValueError):
    """A setting is outside its range, or two settings do not fit together."""


class SourceError(TreedotError, ValueError):
    """A source cannot be read as trees: wrong format, empty, missing column, broken bytes."""


class TreeSyntaxError(SourceError):
    """The text of a tree is malformed; the message carries file, line and column or tree number."""


class LimitError(TreedotError):
    """An exact computation would need more work or memory than its stated limit."""


class RangeError(TreedotError, OverflowError):
    """A result does not fit its number type; the message names a way around."""


class SpecMismatchError(TreedotError, ValueError):
    """Vectors that were made with different settings are being mixed."""


class DeviceError(TreedotError, RuntimeError):
    """There is no such device, or it cannot do what is asked of it."""


class IncompleteError(TreedotError):
    """Some parts of a large work could not be made; the message names them, and the others are finished."""


class MissingDependencyError(TreedotError, ImportError):
    """An optional library is not installed; the message carries the line that installs it."""


def missing(library: str, extra: str, purpose: str) -> MissingDependencyError:
    """Return the error for an absent optional library, with its installation line.

    Parameters
    ----------
    library : str
        The library.
    extra : str
        The extra of treedot that installs it.
    purpose : str
        What needs the library, for the message.

    Returns
    -------
    MissingDependencyError
        The error, to be raised.
    """
    return MissingDependencyError(
        f"{purpose} needs {library}, which is not installed; run: pip install 'treedot[{extra}]'"
    )
