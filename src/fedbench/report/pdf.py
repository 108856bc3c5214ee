"""Compile a table to a PDF where LaTeX is installed."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from fedbench import files
from fedbench.errors import UserError
from fedbench.report.latex import escape

log = logging.getLogger(__name__)
WRAPPER = r"""\documentclass{article}
\usepackage[margin=1in]{geometry}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,graphicx}
\pagestyle{empty}
\makeatletter\setlength{\@fptop}{0pt}\makeatother
\renewcommand{\topfraction}{1}\renewcommand{\textfraction}{0}
\pdfinfoomitdate=1
\pdftrailerid{}
\pdfsuppressptexinfo=-1
\begin{document}
%s\end{document}
"""


def installed() -> bool:
    """Say whether LaTeX is."""
    return all(map(shutil.which, ("latexmk", "pdflatex")))


def build_pdf(tex: Path) -> Path:
    """Compile a table to ``<stem>.pdf`` beside it. Same input, same bytes.

    What is too wide or too tall for the page is logged as a warning. :class:`UserError` where LaTeX is not installed,
    and with its own words when the table does not compile.
    """
    if not installed():
        raise UserError("no LaTeX here; install texlive-latex-recommended and latexmk")
    # numbered as in the paper
    number = rf"\renewcommand{{\thetable}}{{{escape(tex.stem.removeprefix('table'))}}}" + "\n"
    content, complaints = compile_source(WRAPPER % (number + tex.read_text(encoding="utf-8")), str(tex))
    for complaint in complaints:
        log.warning("%s: %s", tex, complaint)
    return files.write(tex.with_suffix(".pdf"), content)


def compile_source(source: str, about: str) -> tuple[bytes, list[str]]:
    """Compile a document; LaTeX has to be :func:`installed`.

    The second part of the result is what LaTeX found too wide or too tall. :class:`UserError` with LaTeX's own
    words, and ``about`` as the document's name, when it does not compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        main = Path(folder, "main.tex")
        main.write_text(source, encoding="utf-8")
        done = subprocess.run(
            ["latexmk", "-norc", "-pdf", "-pdflatex=pdflatex -no-shell-escape %O %S",
             "-interaction=nonstopmode", "-halt-on-error", main.name],
            cwd=folder, capture_output=True, text=True, errors="replace",
            env={**os.environ, "max_print_line": "1000"},
        )  # fmt: skip
        written = main.with_suffix(".log")
        words = written.read_text(encoding="utf-8", errors="replace") if written.exists() else done.stdout
        if done.returncode:
            errors = [line[2:] for line in words.splitlines() if line.startswith("! ")]
            raise UserError(f"{about} does not compile: {'; '.join(errors) or done.stderr.strip()[-300:]}")
        too_large = re.findall(r"^(Overfull .*|LaTeX Warning: Float too large.*)$", words, flags=re.MULTILINE)
        return main.with_suffix(".pdf").read_bytes(), too_large
