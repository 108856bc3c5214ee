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


def test_a_selection_arrives_byte_for_byte_and_only_once(
    other_store: Store, this_store: Store, tmp_path: Path
) -> None:
    archive, keys = tmp_path / "runs.tar.gz", other_store.keys()
    export_runs(other_store, keys[:2], archive)
    assert import_runs(this_store, archive) == Imported(new=keys[:2])
    assert {name: text for name, text in content(other_store).items() if name[:16] != keys[2]} == content(
        this_store
    )
    assert import_runs(this_store, archive) == Imported(present=keys[:2])
    assert [line["event"] for line in journal.read_journal(this_store.root)] == ["imported"] * 2
    assert sorted(path.name for path in this_store.root.iterdir()) == [*keys[:2], journal.NAME]


def test_an_archive_depends_on_the_runs_alone(other_store: Store, tmp_path: Path) -> None:
    first, two = tmp_path / "one.tar.gz", tmp_path / "another name.tar.gz"
    export_runs(other_store, other_store.keys(), first)
    for path in other_store.root.rglob("*"):
        path.touch()
    export_runs(other_store, other_store.keys()[::-1], two)
    assert first.read_bytes() == two.read_bytes()


def test_damaged_runs_are_not_exported(other_store: Store, tmp_path: Path) -> None:
    other_store.curve(other_store.keys()[1]).write_text("round\n")
    with pytest.raises(UserError, match=other_store.keys()[1]):
        export_runs(other_store, other_store.keys(), tmp_path / "runs.tar.gz")
    assert not (tmp_path / "runs.tar.gz").exists()


def test_a_folder_with_runs_is_imported_like_an_archive(other_store: Store, tmp_path: Path) -> None:
    """One that holds the runs, the project that has it, and an archive that was packed by hand."""
    keys, before = other_store.keys(), content(other_store)
    (other_store.path(keys[0]) / "model.pt").write_bytes(b"of which the record knows nothing")
    journal.note(other_store.root, "finished", "x")
    with other_store.claim("0" * 16) as folder, tarfile.open(tmp_path / "hand.tar", "w") as tar:
        (folder / "checkpoint.pt").touch()
        tar.add(other_store.root, "results/runs")
    for number, source in enumerate((other_store.root, other_store.root.parents[1], tmp_path / "hand.tar")):
        store = Store(tmp_path / str(number))
        imported = import_runs(store, source)
        assert imported.new == keys and content(store) == before, source
        assert [name for name in imported.refused if not name.endswith(journal.NAME)] == []


def test_other_numbers_do_not_replace_what_is_here(other_store: Store, this_store: Store) -> None:
    ours = [add(this_store, 0, auc=0.75), add(this_store, 1, curve=0.75)]
    before = content(this_store)
    imported = import_runs(this_store, other_store.root)
    assert sorted(imported.kept) == sorted(ours) and len(imported.new) == 1 and not imported.refused
    assert content(this_store).items() >= before.items()


def test_a_damaged_run_here_is_replaced(other_store: Store, this_store: Store) -> None:
    key = add(this_store, 0)
    this_store.curve(key).write_text("torn")
    assert key in import_runs(this_store, other_store.root).new
    assert this_store.load(key) == other_store.load(key)
    assert (this_store.root / f"{key}.damaged1" / "curve.csv").read_text() == "torn"


def test_a_truncated_archive_gives_what_is_whole_in_it(
    other_store: Store, this_store: Store, tmp_path: Path
) -> None:
    archive = tmp_path / "runs.tar.gz"
    # not compressed: the keys can be found
    with gzip.open(archive, "wb", compresslevel=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(other_store.root.glob("*/*")):
            tar.add(path, path.relative_to(other_store.root))
    text = archive.read_bytes()
    archive.write_bytes(text[: text.index(other_store.keys()[2].encode()) + 1600])
    imported = import_runs(this_store, archive)
    assert imported.new == other_store.keys()[:2] == this_store.keys()
    assert "it ends early" in imported.refused["runs.tar.gz"]


def test_what_killed_imports_left_is_removed(
    other_store: Store, this_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = this_store.root / files.temporary_name(".import")
    shutil.copytree(other_store.root, left)
    monkeypatch.setattr(files, "alive", lambda pid: False)
    monkeypatch.setattr(files.os, "getpid", lambda: 1)
    assert this_store.keys() == []
    import_runs(this_store, other_store.root)
    assert not left.exists() and this_store.keys() == other_store.keys()
