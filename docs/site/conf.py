"""The documentation as a site (Sphinx): `make docs` builds it and fails if a link leads nowhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

project = "webfill"
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/README.md", "docs/**/*.md", "*/README.md", "*/*/README.md", "*/*/*/README.md", "tests/*/*.md"]
exclude_patterns = ["target", ".cache", "docs/site", "worker"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "webfill"
html_show_copyright = False
html_static_path = []
# Examples of webfill's own formats have no lexer.
suppress_warnings = ["misc.highlighting_failure"]

# The contents beside each page: a caption and its pages.
CONTENTS = {
    "Start": ["README"],
    "Tutorials": ["docs/tutorials"],
    "How-to guides": ["docs/how-to", "python/README", "deploy/README", "certs/README"],
    "Explanation": ["docs/explanation", "ARCHITECTURE"],
    "Reference": ["docs/reference", "etl-mappings/README"],
    "Development": [
        "CONTRIBUTING",
        "tests/README",
        "tests/bench",
        "tests/fleet/README",
        "tests/simulation/several",
        "tests/simulation/standbys",
        "tests/bench/extraction/README",
        "tests/fuzz/README",
        "etl-mappings/golden/README",
        "CHANGELOG",
    ],
}


def pages(entry):
    """The pages that an entry of the contents stands for: itself, or those of a folder by their titles."""
    folder = ROOT / entry
    if not folder.is_dir():
        return [entry]
    found = sorted(folder.glob("*.md"), key=lambda page: page.read_text().split("\n")[0].lower())
    return [f"{entry}/{page.stem}" for page in found]


def append_contents(_app, name, source):
    """The page of the start gets the contents, which GitHub would show as code."""
    if name != root_doc:
        return
    for caption, entries in CONTENTS.items():
        listed = "\n".join(f"/{page}" for entry in entries for page in pages(entry))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def link_to_sources(_app, _name, source):
    """What is no page is shown as its name: code and folders are read in the repository."""
    source[0] = re.sub(
        r"\[([^\]\n]+)\]\((?!https?:|#)([^)\s]+?/?)(#[^)\s]*)?\)",
        lambda link: link[0] if re.search(r"\.(md|png|webp|json|toml|html)$", link[2]) else link[1],
        source[0],
    )


def setup(app):
    app.connect("source-read", append_contents)
    app.connect("source-read", link_to_sources)
