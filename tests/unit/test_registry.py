"""Names to things: our own files, other packages' entry points, and what is said when one is broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedbench import algorithms, models, registry
from fedbench.algorithms import make_method
from fedbench.errors import UserError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package ``other`` with entry points that hold and that do not."""
    info = tmp_path / "other-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[fedbench.algorithms]\ntheirs = registry_other:Method\nfedavg = registry_other:Method\n"
        "gone = registry_other:Gone\nbroken = registry_nowhere:Method\n"
        "[fedbench.models]\nline = registry_other:build\n"
    )
    (tmp_path / "registry_other.py").write_text(
        "from fedbench.algorithms.fedprox import Method\n"
        "def build(shape, outputs):\n    from torch import nn\n    return nn.Linear(shape[0], outputs)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("package")
def test_a_package_adds_names_and_ours_win() -> None:
    assert {"theirs", "fedavg", "gone"} <= set(registry.names(algorithms))
    assert registry.names(algorithms).count("fedavg") == 1
    assert registry.origins(algorithms) == dict.fromkeys(("theirs", "gone", "broken"), "other")
    assert registry.origins(models) == {"line": "other"}
    assert make_method("theirs", {"lr": 0.1, "mu": 0.2}) == make_method("fedprox", {"lr": 0.1, "mu": 0.2})
    assert make_method("fedavg", {"lr": 0.1}).__class__.__module__ == "fedbench.algorithms.fedavg"


@pytest.mark.usefixtures("package")
def test_a_package_that_does_not_hold_what_it_says_is_named() -> None:
    for name, says in (("gone", "Gone"), ("broken", "registry_nowhere")):
        with pytest.raises(UserError, match=f"method '{name}' of the package other: .*{says}"):
            make_method(name, {})


def test_a_file_that_defines_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty_method.py").write_text("Methode = 1\n")
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(tmp_path)])
    with pytest.raises(UserError, match=r"empty_method\.py has to define 'Method' to be a method"):
        make_method("empty_method", {})
    (tmp_path / "base_method.py").write_text("from fedbench.method import FederatedMethod as Method\n")
    with pytest.raises(UserError, match=r"'base_method'.*only imports it: define a class of your own"):
        make_method("base_method", {})


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("\ndef broken(:\n", 2, "invalid syntax"),
        ("import registry_none\n", 1, "ModuleNotFoundError: No module named 'registry_none'"),
        ("from fedbench.method import Metod\n", 1, "Metod"),
        ("\n\nclass Method(Metod):\n    pass\n", 3, "NameError: name 'Metod' is not defined"),
        ("from dataclasses import *\n@dataclass\nclass Method:\n    a: list = []\n", 2, "mutable default"),
        ("class Method:\n    averaged = Tuple\n", 2, "NameError: name 'Tuple' is not defined"),
    ],
)
def test_a_mistake_in_a_file_is_one_line_with_its_place(
    text: str, line: int, says: str, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file of ours and in one of another package."""
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(package / "ours")])
    (package / "ours").mkdir()
    for name, path in (("faulty", package / "ours/faulty.py"), ("broken", package / "registry_nowhere.py")):
        path.write_text(text)
        place = re.escape(f"{path}, line {line}: ")
        with pytest.raises(UserError, match=f"method '{name}'.*{place}.*{re.escape(says)}") as raised:
            make_method(name, {})
        assert "\n" not in str(raised.value)


def test_names_bind_nobody_and_a_range_beside_a_field_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``beta`` is a share in our methods, ``tau`` above 0: of others' methods it was refused by its name."""
    (tmp_path / "ranged_method.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import Annotated\n"
        "from annotated_types import Lt\nfrom pydantic import Field\n"
        "from fedbench.method import FederatedMethod, Positive\n"
        "@dataclass(frozen=True)\nclass Method(FederatedMethod):\n"
        "    beta: float\n    tau: float\n    lr: Positive\n    gap: Annotated[float, Field(gt=-1), Lt(2)]\n"
    )
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(tmp_path)])
    good = {"beta": 1.5, "tau": 0, "lr": 0.1, "gap": -0.5}
    make_method("ranged_method", good)
    for change, says in (
        ({"lr": 0}, "method 'ranged_method': lr: Input should be"),
        ({"gap": 2}, "gap: Input should be"),
        ({"beta": float("inf")}, "beta: Input should be a finite number"),
        ({"tau": "x"}, "tau: Input should be a valid number"),
    ):
        with pytest.raises(UserError, match=says):
            make_method("ranged_method", good | change)


def test_helpers_have_no_name() -> None:
    assert not [name for name in registry.names(algorithms) if name.startswith("_")]
    with pytest.raises(UserError, match=r"unknown method 'fedavgg'\. Did you mean 'fedavg'"):
        make_method("fedavgg", {})
