"""The command ``treedot serve``: a local web server."""

from __future__ import annotations

import argparse
import os
import re
from importlib.util import find_spec

from treedot.cli.options import MODEL_HELP
from treedot.errors import ParameterError, SourceError, missing
from treedot.parameters import checked_integer

LAST_PORT = 65_535
INDEX, MODEL = rb"{\"format\": \"treedot index\"", b'"format": "treedot model"'  # in the first bytes of files
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?")


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument(
        "--index", metavar="FILE", help="the index to search, a file that treedot index wrote"
    )
    command.add_argument("--model", metavar="MODEL", help="the model to explain, " + MODEL_HELP)
    command.add_argument(
        "--port", type=int, default=8765, metavar="N", help="the port; 0 chooses a free one (default: 8765)"
    )
    command.add_argument(
        "--origin",
        action="append",
        default=[],
        metavar="URL",
        help="also answer pages of this origin, such as https://trees.example.org of a proxy (repeatable)",
    )


def run(options: argparse.Namespace) -> None:
    """Compare trees, explain decisions and search an index in a browser.

    Start a web server that only this machine can reach, and print its address. Its pages compare two trees,
    explain the decisions of a model, and search an index; the same answers are JSON under /api. It reads
    nothing but the index, the source files that it names, and the model, and writes nothing. Ctrl-C ends it.

    Example: treedot serve --index code.index
    """
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise missing(name, "serve", "treedot serve")
    from treedot.serve.answers import Given
    from treedot.serve.server import serve

    for path in filter(None, (options.index, options.model)):
        if not os.path.exists(path):
            raise SourceError(f"cannot open {path}: no such file or folder")
    if options.index and os.path.isdir(options.index):
        raise SourceError(f"--index {options.index} is a folder: give a file that treedot index wrote")
    if options.index and not _begins_with(options.index, INDEX):
        raise SourceError(f"--index {options.index} is not an index: give a file that treedot index wrote")
    if options.model and not _begins_with(os.path.join(options.model, "config.json"), MODEL):
        raise SourceError(f"--model {options.model} is not a model: give a folder that treedot train wrote")
    for origin in options.origin:
        if not ORIGIN.fullmatch(origin):
            raise ParameterError(f"--origin must be like https://trees.example.org, not {origin!r}")
    port = checked_integer("--port", options.port, at_least=0)
    if port > LAST_PORT:
        raise ParameterError(f"--port must be at most {LAST_PORT}, not {port}")
    serve(
        port, Given(options.index, options.model), options.origin, lambda address: print(address, flush=True)
    )


def _begins_with(path: str, name: bytes) -> bool:
    """Return whether the first bytes of a file name a format; the modules that read it whole load NumPy."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return name in file.read(200)
