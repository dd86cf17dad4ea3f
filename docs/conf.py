"""Build the documentation with Sphinx: strictly, and without anything from elsewhere.

``make pages`` builds it into build/site. The reasons for this generator are in
docs/decisions/documentation.md.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent / "src")]

from shoal import __version__

project = "Shoal"
author = "The Shoal developers"
copyright = "The Shoal developers. Apache-2.0"  # noqa: A001
version = release = __version__
language = "en_GB"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "crosslinks",
    "mathml",
    "mermaid",
    "notebooks",
]
exclude_patterns = ["_extensions", "_templates", "_static"]
templates_path = ["_templates"]

# Markdown: headings are anchors down to the fourth level; $…$ is maths; ::: opens an admonition.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_labels = False
myst_fence_as_directive = ["mermaid"]

# A page for each object, with the members that it inherits from Shoal's own classes.
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "inherited-members": "ABC, BaseException, Protocol, Struct, dict, object, tuple",
}
autodoc_class_signature = "separated"
autodoc_typehints_format = "short"
add_module_names = False
python_use_unqualified_type_names = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# An attribute that two classes have is not a link that leads nowhere.
suppress_warnings = ["ref.python"]

html_theme = "pydata_sphinx_theme"
html_title = "Shoal"
html_favicon = "images/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["shoal.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {
        "text": "Shoal",
        "image_light": "images/favicon.svg",
        "image_dark": "images/favicon.svg",
    },
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "collapse_navigation": True,
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
