"""Runs that move between machines: whole and checked, or refused by name."""

from __future__ import annotations

import gzip
import shutil
import tarfile
from pathlib import Path

import pytest
from made_up import add

from fedbench import files
from fedbench.errors import UserError
from fedbench.store import journal
from fedbench.store.exchange import Imported, export_runs, import_runs
from fedbench.store.runs import Store


def content(store: Store) -> dict[str, bytes]:
    files_ = (path for path in store.root.rglob("*") if path.is_file() and path.name != journal.NAME)
    return {str(path.relative_to(store.root)): path.read_bytes() for path in files_}


def test_a_selection_arrives_byte_for_byte_and_only_once(there: Store, here: Store, tmp_path: Path) -> None:
    archive, keys = tmp_path / "runs.tar.gz", there.keys()
    export_runs(there, keys[:2], archive)
    assert import_runs(here, archive) == Imported(new=keys[:2])
    assert {name: text for name, text in content(there).items() if name[:16] != keys[2]} == content(here)
    assert import_runs(here, archive) == Imported(present=keys[:2])
    assert [line["event"] for line in journal.read(here.root)] == ["imported"] * 2
    assert sorted(path.name for path in here.root.iterdir()) == [*keys[:2], journal.NAME]


def test_an_archive_depends_on_the_runs_alone(there: Store, tmp_path: Path) -> None:
    one, two = tmp_path / "one.tar.gz", tmp_path / "another name.tar.gz"
    export_runs(there, there.keys(), one)
    for path in there.root.rglob("*"):
        path.touch()
    export_runs(there, there.keys()[::-1], two)
    assert one.read_bytes() == two.read_bytes()


def test_damaged_runs_are_not_exported(there: Store, tmp_path: Path) -> None:
    there.curve(there.keys()[1]).write_text("round\n")
    with pytest.raises(UserError, match=there.keys()[1]):
        export_runs(there, there.keys(), tmp_path / "runs.tar.gz")
    assert not (tmp_path / "runs.tar.gz").exists()


@pytest.mark.parametrize("inside", ["", "results/runs"])
def test_a_folder_with_runs_is_imported_like_an_archive(there: Store, here: Store, inside: str) -> None:
    source = there.root if not inside else there.root.parents[1]
    (there.root / f"{'0' * 16}.unfinished").mkdir()
    assert import_runs(here, source) == Imported(new=there.keys())
    assert here.keys() == there.keys()


def test_a_store_packed_by_hand_is_imported(there: Store, here: Store, tmp_path: Path) -> None:
    journal.note(there.root, "finished", "x")
    with there.claim("0" * 16) as folder, tarfile.open(tmp_path / "hand.tar", "w") as tar:
        (folder / "checkpoint.pt").touch()
        tar.add(there.root, "results/runs")
    found = import_runs(here, tmp_path / "hand.tar")
    assert found.new == there.keys()
    assert [name for name in found.refused if not name.endswith(journal.NAME)] == []


def test_other_numbers_do_not_replace_what_is_here(there: Store, here: Store) -> None:
    key = add(here, 0, auc=0.75)
    before = content(here)
    found = import_runs(here, there.root)
    assert found.kept == [key] and len(found.new) == 2 and not found.refused
    assert content(here).items() >= before.items()


def test_a_damaged_run_here_is_replaced(there: Store, here: Store) -> None:
    key = add(here, 0)
    here.curve(key).write_text("torn")
    assert key in import_runs(here, there.root).new
    assert here.load(key) == there.load(key)
    assert (here.root / f"{key}.damaged1" / "curve.csv").read_text() == "torn"


def test_a_truncated_archive_gives_what_is_whole_in_it(there: Store, here: Store, tmp_path: Path) -> None:
    archive = tmp_path / "runs.tar.gz"
    # not compressed: the keys can be found
    with gzip.open(archive, "wb", compresslevel=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(there.root.glob("*/*")):
            tar.add(path, path.relative_to(there.root))
    text = archive.read_bytes()
    archive.write_bytes(text[: text.index(there.keys()[2].encode()) + 1600])
    found = import_runs(here, archive)
    assert found.new == there.keys()[:2] == here.keys()
    assert "it ends early" in found.refused["runs.tar.gz"]


def test_what_killed_imports_left_is_removed(
    there: Store, here: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = here.root / files.temporary_name(".import")
    shutil.copytree(there.root, left)
    monkeypatch.setattr(files, "alive", lambda pid: False)
    monkeypatch.setattr(files.os, "getpid", lambda: 1)
    assert here.keys() == []
    import_runs(here, there.root)
    assert not left.exists() and here.keys() == there.keys()
