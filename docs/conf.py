"""Settings of the documentation's site, which ``make docs`` builds."""

from importlib.util import find_spec

from treedot import __version__
from treedot._pages.page import COLOURS, DARK_COLOURS

project = "treedot"
author = "The treedot developers"
release = version = __version__
copyright = author

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["examples", "templates"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]  # for treedot.torch
numpydoc_show_class_members = False  # the template lists them
templates_path = ["templates"]

html_theme = "furo"
NAMES = {  # of furo's variables, and of those of treedot's pages that have the same use
    "color-foreground-primary": "text",
    "color-foreground-secondary": "quiet",
    "color-background-primary": "back",
    "color-background-secondary": "soft",
    "color-background-border": "line",
    "color-brand-primary": "accent",
    "color-brand-content": "accent",
    "color-highlighted-background": "mark",
    "color-problematic": "bad",
}
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {name: COLOURS[ours] for name, ours in NAMES.items()},
    "dark_css_variables": {name: DARK_COLOURS[ours] for name, ours in NAMES.items()},
}
html_title = f"treedot {release}"
