"""Sphinx configuration: `python -m sphinx -W --keep-going docs docs/_build/html` builds the site."""

import importlib.metadata
import os

os.environ.setdefault("MPLBACKEND", "Agg")

project = "gdpa"
author = "the gdpa developers"
copyright = "2026, the gdpa developers"
release = importlib.metadata.version("gdpa")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py.md5"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 10_000,
    "within_subsection_order": "FileNameSortKey",
}
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "gdpa"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["gdpa.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}
# No request leaves the reader's machine: formulas are typeset by the copy in _static if there is
# one, and pages read well without it.
mathjax_path = "mathjax/tex-svg.js"
