"""Compile a table to a PDF, where LaTeX is installed."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from fedbench.errors import UserError

log = logging.getLogger(__name__)
WRAPPER = r"""\documentclass{article}
\usepackage[margin=1in]{geometry}
\usepackage[utf8]{inputenc}
\usepackage{booktabs}
\pagestyle{empty}
\makeatletter\setlength{\@fptop}{0pt}\makeatother
\pdfinfoomitdate=1
\pdftrailerid{}
\pdfsuppressptexinfo=-1
\begin{document}
%s\end{document}
"""


def build_pdf(tex: Path) -> Path | None:
    """Compile a table to ``<stem>.pdf`` beside it; None where LaTeX is not installed. Same input, same bytes.

    What is too wide or too tall for the page is logged as a warning. :class:`UserError` with LaTeX's own
    words when the table does not compile.
    """
    pdf, complaints = compile_table(tex)
    for complaint in complaints:
        log.warning("%s: %s", tex, complaint)
    return pdf


def compile_table(tex: Path) -> tuple[Path | None, list[str]]:
    """Do the work of :func:`build_pdf`; return the PDF and what LaTeX found too wide or too tall."""
    latexmk = shutil.which("latexmk")
    if latexmk is None or shutil.which("pdflatex") is None:
        return None, []
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder, "table.tex")
        wrapper.write_text(WRAPPER % tex.read_text(encoding="utf-8"), encoding="utf-8")
        done = subprocess.run(
            [latexmk, "-pdf", "-interaction=nonstopmode", "-halt-on-error", wrapper.name],
            cwd=folder, capture_output=True, text=True, errors="replace",
            env={**os.environ, "SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "max_print_line": "1000"},
        )  # fmt: skip
        written = wrapper.with_suffix(".log")
        words = written.read_text(encoding="utf-8", errors="replace") if written.exists() else done.stdout
        if done.returncode:
            errors = [line[2:] for line in words.splitlines() if line.startswith("! ")]
            raise UserError(f"{tex} does not compile: {'; '.join(errors) or done.stderr.strip()[-300:]}")
        target = tex.with_suffix(".pdf")
        partial = target.with_suffix(".pdf.part")
        shutil.copyfile(wrapper.with_suffix(".pdf"), partial)
        partial.replace(target)
    return target, re.findall(r"^(Overfull .*|LaTeX Warning: Float too large.*)$", words, flags=re.MULTILINE)
