"""How Sphinx turns the staged pages into a site; `docs/tools/build_site.py` stages them and calls it."""

import importlib.metadata

project = "Secant"
copyright = "the authors of Secant"
release = importlib.metadata.version("secant")
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Secant"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"
# PROOFS.md begins its sections at ## under a # that names the analysis; some pages open with a table.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
