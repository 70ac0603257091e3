"""Sphinx's settings; `tools/docs.py` builds with them, from a copy of this folder.

Sphinx with numpydoc, because the docstrings are numpydoc's: it reads their sections and resolves
their See Also without a plugin between, where mkdocstrings knows only part of the format.
"""

from __future__ import annotations

import dpviz

project = "dpviz"
author = "The dpviz authors"
copyright = author
version = release = dpviz.__version__

# githubpages: a file without which hosts that use Jekyll would drop _static.
extensions = ["sphinx.ext.autodoc", "sphinx.ext.githubpages", "numpydoc", "myst_parser"]
source_suffix = {".md": "markdown"}
default_role = "code"  # single backticks are names in the docstrings, and not all have a page
nitpicky = True
# Named under See Also, without a page here.
nitpick_ignore = [
    ("py:obj", "dpviz.releasing.making.make"),
    ("py:obj", "sklearn.decomposition.PCA"),
]

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say them, with shapes and units
maximum_signature_line_length = 88
autosummary_generate = False  # numpydoc loads it; nothing here asks for its pages
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"  # system fonts, and nothing from another host
html_title = "dpviz"
html_static_path = ["_static"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
