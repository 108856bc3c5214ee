"""Compile a table to the PDF beside it: ``python workflow/scripts/typeset.py tables/<paper>/table1.tex``."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from fedbench.errors import UserError, explain
from fedbench.report.pdf import build_pdf


def main(tex: str) -> int:
    """Run the program; exit status 2 and one line on a mistake of the user."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        if build_pdf(Path(tex)):
            return 0
        print("error: no LaTeX here; install texlive-latex-recommended and latexmk", file=sys.stderr)
    except (UserError, OSError) as error:
        print(f"error: {explain(error)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
