"""A hook of MkDocs: pages and examples of the repository that lie outside of docs/ become part of the site."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation

ROOT = Path(__file__).parents[1]
PAGES = {
    "benchmarks/README.md": "background/benchmarks.md",
    "reproduced/README.md": "reference/results/files.md",
}
"""Where a page lies in the repository, and in the site."""
EXAMPLES = {
    path: f"gallery/{path}" + (".txt" if path.endswith(".md") else "")
    for path in (
        file.relative_to(ROOT).as_posix()
        for kind in ("figures", "tables")
        for file in sorted((ROOT / kind / "gallery").rglob("*.*"))
    )
}
"""Likewise the files of the gallery; its Markdown is no page."""
GALLERY = "reference/gallery.md"
"""Its tables are no texts to search in."""
REPORT = "report.html"
"""All reference results on one page, which `make docs` puts beside the pages."""
UNUSED = ("**/*.map", "assets/javascripts/lunr")
"""Of the theme: maps of its sources, and search in other languages."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages to those of docs/."""
    for source, target in (PAGES | EXAMPLES).items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links to the pages lead to where they are in the site."""
    folder = Path(page.file.src_uri).parent
    page.meta["search"] = {"exclude": page.file.src_uri == GALLERY}
    known = PAGES | EXAMPLES

    def moved(link: re.Match[str]) -> str:
        source = os.path.relpath(Path("docs", folder, link[1]))
        return f"]({os.path.relpath(known[source], folder)}" if source in known else link[0]

    return re.sub(r"\]\(([^)\s#]+)", moved, markdown)


def on_nav(nav: Navigation, config: Any, files: Files) -> Navigation:
    """Add the page of all reference results, which is made beside the site."""
    nav.items.append(Link("All numbers", REPORT))
    return nav


def on_post_build(config: Any) -> None:
    """Remove what no page loads."""
    for path in (path for pattern in UNUSED for path in [*Path(config["site_dir"]).glob(pattern)]):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
