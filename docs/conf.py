"""Sphinx configuration; build with `python -m sphinx -W --keep-going docs docs/_build/html`."""

import importlib.metadata
import os
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here / "_ext"))
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
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "_ext", "tutorials", "auto_*/**.ipynb", "auto_*/**.json"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "attrs_block"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autoclass_content = "class"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "tutorials"],
    "gallery_dirs": ["auto_examples", "auto_tutorials"],
    "filename_pattern": r"[/\\]plot_",
    "ignore_pattern": "make_",
    "copyfile_regex": r".*\.rst",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10_000,
    "within_subsection_order": "FileNameSortKey",
    # The figures show the displays; do not print their repr.
    "ignore_repr_types": r"gdpa\.plotting|matplotlib",
    "image_srcset": ["2x"],
    "doc_module": ("gdpa",),
    "backreferences_dir": None,
}
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "gdpa"
toc_object_entries_show_parents = "hide"

html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["gdpa.css"]
html_math_renderer = "mathml"  # the pages work offline
html_context = {"default_mode": "auto"}  # without it the theme logs an error on the first visit
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,  # with short titles in index.md they fit 1,280 px
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}

# Generated pages may be missing; the table of contents lists only those that exist.
written_pages = ("REPRODUCTION", "performance")


def _list_written_pages(app, docname, source):
    if docname in ("understand", "reference"):
        for page in written_pages:
            if not (here / f"{page}.md").exists():
                lines = source[0].split("\n")
                source[0] = "\n".join(line for line in lines if page not in line)


def setup(app):
    app.connect("source-read", _list_written_pages)
