"""What README.md and the how-to pages show is done here as it stands there: files, commands, tables."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess

import pytest

from projects import BIN, PARTS, ROOT, Project

BLOCK = re.compile(r"(?:^`([^`\n]+)`\n\n)?^```(\w+)\n(.*?)^```$", flags=re.M | re.S)
"""A fenced block: the path in the line before it if it is a file, its language, its text."""


OFFLINE = {"PIP_TARGET": "site", "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
"""For pip: into a folder of the clone, with nothing from a network (0 is how its variable says that it is on)."""
SECTIONS = {
    "Your method": ("README.md", "mine", "method", "NormalizedSGD"),
    "A CSV, from file to table": ("docs/howto/data.md", "tumours", "dataset", "Cancer"),
    "A dataset in one file": ("docs/howto/data.md", "rings", "dataset", "Rings"),
    "A paper, with its published numbers": ("docs/howto/paper.md", "skewed", "method", "FedProx"),
    "A network": ("docs/howto/network.md", "wide", "dataset", "WideDigits"),
}
"""Where each section is, and what it builds: Table 1 of which paper, and the row that is new in it."""


def blocks(page: str, title: str = "") -> list[tuple[str, str, str]]:
    """The blocks of a page, or of a section of it."""
    text = (ROOT / page).read_text()
    return BLOCK.findall(text.partition(f"\n## {title}\n")[2].partition("\n## ")[0] if title else text)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """A clone in which a reader has followed every section, and what the commands said; its demo scale takes seconds.

    Snakemake is called once, with the targets of all sections.
    """
    project = Project(tmp_path_factory.mktemp("clone"))
    for part in (*PARTS, "src", "published", "tests/unit"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        (project.root / part).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / part, project.root / part)
    with project.edit("config/scales/demo.yaml") as scale:
        scale["seeds"] = [0]
        scale["papers"]["localscgdam"]["train"] |= {"iterations": 12, "evaluations": 1}
    said, targets = "", list[str]()
    for page, title in (
        *((place[0], title) for title, place in SECTIONS.items()),
        ("docs/howto/package.md", ""),
    ):
        said += follow(project, blocks(page, title), targets)
    return project, said + call(project, f"snakemake {' '.join(targets)}")


def activated(project: Project) -> dict[str, str]:
    """The environment of a reader: the virtual environment is active, the clone is what is installed in it."""
    path = os.pathsep.join([str(project.programs), str(BIN), os.environ["PATH"]])
    python = os.pathsep.join(str(project.root / part) for part in ("src", "site"))
    return {**project.environment(), "PATH": path, "PYTHONPATH": python, **OFFLINE}


def follow(project: Project, steps: list[tuple[str, str, str]], targets: list[str]) -> str:
    """Write the files and run the commands, in their order; note what Snakemake is asked for; return what was said."""
    said = ""
    for path, language, text in steps:
        if path:
            file = project.root / path
            assert not file.exists(), f"{path} is one of ours"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            continue
        assert language == "bash", f"a {language} block without a file's name before it"
        targets += re.findall(r"^snakemake (tables/\S+)$", text, flags=re.M)
        said += call(project, re.sub(r"^snakemake tables/\S+$", "", text, flags=re.M))
    return said


def call(project: Project, commands: str) -> str:
    """Run the commands in the reader's shell; return what they said."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=project.root, env=activated(project),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def table(project: Project, paper: str) -> list[dict[str, str]]:
    with (project.root / f"tables/{paper}/table1.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_ends_in_a_table_with_the_new_row(section: str, followed: tuple[Project, str]) -> None:
    _, paper, axis, new = SECTIONS[section]
    clone, _ = followed
    rows = table(clone, paper)
    result = [row for row in rows if row[axis] == new and row["n_wanted"] != "0"]
    assert result and all(row["status"] == "finished" and row["scale"] == "demo" for row in result)
    alone = axis == "dataset"  # a table of one's own data holds what it names
    assert (len({row[axis] for row in rows}) == 1) == alone
    assert new in (clone.root / f"tables/{paper}/table1.md").read_text()
    if paper == "skewed":
        held = {(row["method"], row["delta"]): (row["published_mean"], row["verdict"]) for row in rows}
        assert held["FedAvg", "0.1"][0] == "0.80" and held["FedAvg", "10"][0] == "0.84"
        judged = {"matches", "above published", "below published", "inconclusive", "not published"}
        assert {verdict for _, verdict in held.values()} <= judged
        assert held["FedProx", "10"] == ("", "not published")


def test_a_package_brings_a_method_a_dataset_a_network_and_a_rule(followed: tuple[Project, str]) -> None:
    clone, said = followed
    for name in ("lazy_sgd (of my-package)", "cubic (of my-package)", "favourite (of my-package)"):
        assert name in said
    listed = next(line for line in said.splitlines() if line.split()[:1] == ["clouds"])
    assert listed.endswith("(of my-package)")
    assert (clone.root / "site/my_package.py").exists()
    rows = {row["method"]: row for row in table(clone, "packaged")}
    assert set(rows) == {"FedAvg", "LazySGD"} and all(row["status"] == "finished" for row in rows.values())
    assert float(rows["FedAvg"]["mean"]) > 0.6  # three classes: by chance a third
    assert rows["FedAvg"]["mean"] != rows["LazySGD"]["mean"]
