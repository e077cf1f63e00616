"""Collect no examples from modules whose library is not installed."""

from importlib.util import find_spec

NEEDED = {"torch": "src/treedot/torch.py", "mcp": "src/treedot/agents/server.py"}
collect_ignore = [path for library, path in NEEDED.items() if not find_spec(library)]
