"""The errors that treedot raises; each message says what was wrong, where, and what to do."""

from __future__ import annotations


class TreedotError(Exception):
    """Base class of all errors that treedot raises on purpose."""


class ParameterError(TreedotError, ValueError):
    """A setting is outside its range, or two settings do not fit together."""


class SourceError(TreedotError, ValueError):
    """A source cannot be read as trees: wrong format, empty, missing column, broken bytes."""


class TreeSyntaxError(SourceError):
    """The text of a tree is malformed; the message gives file, line and column, or the tree's number."""


class LimitError(TreedotError):
    """An exact computation would need more work or memory than its stated limit."""


class RangeError(TreedotError, OverflowError):
    """A result does not fit its number type; the message suggests a workaround."""


class SpecMismatchError(TreedotError, ValueError):
    """Vectors made with different settings cannot be mixed."""


class DeviceError(TreedotError, RuntimeError):
    """The device does not exist, or does not support the operation."""


class IncompleteError(TreedotError):
    """Some parts of a large job failed; the message names them. All other parts are finished."""


class MissingDependencyError(TreedotError, ImportError):
    """An optional library is not installed; the message contains the command that installs it."""


def missing(library: str, extra: str, purpose: str) -> MissingDependencyError:
    """Return the error for an optional library that is not installed.

    Parameters
    ----------
    library : str
        The name of the library.
    extra : str
        The extra of treedot that installs it.
    purpose : str
        The feature that needs the library, for the message.

    Returns
    -------
    MissingDependencyError
        The error, to be raised.
    """
    return MissingDependencyError(
        f"{purpose} needs {library}, which is not installed; {how_to_install(library, extra)}"
    )


def how_to_install(library: str, extra: str) -> str:
    """Return how to install an optional library, wherever treedot itself was installed from.

    Parameters
    ----------
    library : str
        The name of the library.
    extra : str
        The extra of treedot that installs it.

    Returns
    -------
    str
        What to do, for a message.

    Examples
    --------
    >>> how_to_install("lxml", "html")
    "run: pip install lxml, or install treedot again with the extra 'html'"
    """
    return f"run: pip install {library}, or install treedot again with the extra {extra!r}"
