"""Sphinx's settings; `tools/docs.py` builds a copy of this folder with them.

Sphinx with numpydoc, because the docstrings follow numpydoc: it reads their sections and resolves
their See Also without a plugin, but mkdocstrings supports only part of the format.
"""

from __future__ import annotations

import dpviz

project = "dpviz"
author = "The dpviz authors"
copyright = author
version = release = dpviz.__version__

# The extension githubpages adds a file, because hosts with Jekyll would drop _static otherwise.
extensions = ["sphinx.ext.autodoc", "sphinx.ext.githubpages", "numpydoc", "myst_parser"]
source_suffix = {".md": "markdown"}
default_role = "code"  # Docstrings put names in single backticks, even names without a page.
nitpicky = True
# Docstrings list these names under See Also, although the names have no page here.
nitpick_ignore = [
    ("py:obj", "dpviz.releasing.making.make"),
    ("py:obj", "sklearn.decomposition.PCA"),
]

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # Docstrings already state types, with shapes and units.
maximum_signature_line_length = 88
autosummary_generate = False  # numpydoc loads autosummary, but no page here uses it.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"  # This theme uses system fonts, so a page loads nothing elsewhere.
html_title = "dpviz"
html_static_path = ["_static"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
