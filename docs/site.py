"""A hook of MkDocs: two pages of the repository that lie outside of docs/ become pages of the site."""

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "benchmarks/README.md": "background/benchmarks.md",
    "reproduced/README.md": "reference/results/files.md",
}
"""Where a page lies in the repository, and in the site."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages to those of docs/."""
    for source, target in PAGES.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links to the pages lead to where they are in the site."""
    folder = Path(page.file.src_uri).parent

    def moved(link: re.Match[str]) -> str:
        source = os.path.relpath(Path("docs", folder, link[1]))
        return f"]({os.path.relpath(PAGES[source], folder)}" if source in PAGES else link[0]

    return re.sub(r"\]\(([^)\s#]+)", moved, markdown)
