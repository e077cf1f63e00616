"""Settings of the documentation's site, which ``make docs`` builds."""

from treedot import __version__

project = "treedot"
author = "The treedot developers"
release = version = __version__
copyright = author

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["examples", "templates"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False  # the template lists them
templates_path = ["templates"]

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_title = f"treedot {release}"
