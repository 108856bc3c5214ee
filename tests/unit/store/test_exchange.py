"""Runs that move between machines: whole and checked, or refused by name, also after power cuts."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedbench import files, sealed_json
from fedbench.errors import UserError
from fedbench.spec import digest
from fedbench.store import exchange, journal
from fedbench.store.exchange import Imported, export_runs, import_runs
from fedbench.store.record import Record
from fedbench.store.runs import Store


def add(store: Store, seed: int, auc: float = 0.5, curve: float = 0.5) -> str:
    """Put a run into a store that ends with ``auc``, and whose curve says ``curve``; return its key."""
    spec = {"method": "coda", "data": {"dataset": "digits"}, "seed": seed}
    key = digest(spec)
    with store.claim(key):
        record = Record(key, spec, "finished", "", {"test_auc": auc}, {"commit": "abc"}, {})
        store.finish(
            record, [{"round": 0, "test_auc": curve}], [{"round": 0, "quantity": "dual", "client0": 1.0}]
        )
    return key


@pytest.fixture
def other_store(tmp_path: Path) -> Store:
    """A store with three runs."""
    store = Store(tmp_path / "there" / "results" / "runs")
    for seed in range(3):
        add(store, seed)
    return store


@pytest.fixture
def this_store(tmp_path: Path) -> Store:
    return Store(tmp_path / "here")


def content(store: Store) -> dict[str, bytes]:
    files_ = (path for path in store.root.rglob("*") if path.is_file() and path.name != journal.NAME)
    return {str(path.relative_to(store.root)): path.read_bytes() for path in files_}


def test_a_selection_arrives_byte_for_byte_and_only_once(
    other_store: Store, this_store: Store, tmp_path: Path
) -> None:
    """The bytes of an archive depend on the runs alone."""
    archive, again, keys = tmp_path / "runs.tar.gz", tmp_path / "another name.tar.gz", other_store.keys()[:2]
    export_runs(other_store, keys, archive)
    for path in other_store.root.rglob("*"):
        path.touch()
    export_runs(other_store, keys[::-1], again)
    assert archive.read_bytes() == again.read_bytes()
    assert import_runs(this_store, archive) == Imported(new=keys)
    before = content(this_store)
    assert before == {name: text for name, text in content(other_store).items() if name[:16] in keys}
    assert import_runs(this_store, archive) == Imported(present=keys) and content(this_store) == before
    assert [line["event"] for line in journal.read_journal(this_store.root)] == ["imported"] * 2
    (other_store.path(keys[1]) / "curve.csv").write_text("round\n")
    with pytest.raises(UserError, match=keys[1]):
        export_runs(other_store, keys, tmp_path / "damaged.tar.gz")
    assert not (tmp_path / "damaged.tar.gz").exists()


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


def test_other_numbers_do_not_replace_what_is_here_unless_that_is_damaged(
    other_store: Store, this_store: Store
) -> None:
    ours = [add(this_store, 0, auc=0.75), add(this_store, 1, curve=0.75)]
    before, torn = content(this_store), add(this_store, 2)
    (this_store.path(torn) / "curve.csv").write_text("torn")
    imported = import_runs(this_store, other_store.root)
    assert sorted(imported.kept) == sorted(ours) and imported.new == [torn] and not imported.refused
    assert content(this_store).items() >= before.items()
    assert this_store.load(torn) == other_store.load(torn)
    assert (this_store.root / f"{torn}.damaged1" / "curve.csv").read_text() == "torn"


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


def of_the_record(**changes: object) -> Callable[[Path], Any]:
    """Return an edit of a record with a right checksum."""
    return lambda run: sealed_json.write(run / "run.json", sealed_json.read(run / "run.json") | changes)


def with_a_link(run: Path) -> None:
    (run / "curve.csv").rename(run.parents[1] / "elsewhere.csv")
    (run / "curve.csv").symlink_to(run.parents[1] / "elsewhere.csv")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: (run / "curve.csv").write_text("x"), "curve.csv is not what was written"),
        (lambda run: run.rename(run.with_name("f" * 16)), "holds the run"),
        (of_the_record(files={"../../evil": ""}), "files.../../evil"),
        (of_the_record(reason="EPYC\x1b[2J"), "control characters"),
        (with_a_link, "curve.csv is missing"),
    ],
)
def test_bad_runs_are_refused_by_name_and_the_others_taken(
    other_store: Store, this_store: Store, damage: Callable[[Path], object], says: str
) -> None:
    bad, *good = other_store.keys()
    damage(other_store.path(bad))
    imported = import_runs(this_store, other_store.root)
    ((name, why),) = imported.refused.items()
    assert name in (bad, "f" * 16) and says in why and ".import" not in why and why.isprintable()
    assert imported.new == good == this_store.keys()
    assert sorted(path.name for path in this_store.root.iterdir()) == [*good, journal.NAME]


def pack(archive: Path, store: Store, *extra: tuple[tarfile.TarInfo, bytes]) -> Path:
    """Pack a store, and members an export would never make, in front."""
    with tarfile.open(archive, "w:gz") as tar:
        for info, text in extra:
            info.size = len(text) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(text))
        for path in sorted(store.root.glob("*/*")):
            tar.add(path, path.relative_to(store.root))
    return archive


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_names_and_links_in_an_archive_reach_nothing_outside(
    other_store: Store, this_store: Store, tmp_path: Path
) -> None:
    secret, other = tmp_path / "secret", "a" * 16
    secret.write_text("secret")
    hostile = [
        (member("../../evil"), b"1"),
        (member(f"{tmp_path}/evil"), b"1"),
        (member(f"{other}/../../evil"), b"1"),
        (member(f"{other}/run.json", tarfile.SYMTYPE, str(secret)), b""),
        (member(f"{other}/curve.csv", tarfile.LNKTYPE, str(secret)), b""),
        (member(f"{'b' * 16}/run.json", tarfile.FIFOTYPE), b""),
        (member(f"{'c' * 16}/run.sh"), b"1"),
    ]
    before = {path for path in tmp_path.rglob("*") if this_store.root not in path.parents}
    imported = import_runs(this_store, pack(tmp_path / "evil.tar.gz", other_store, *hostile))
    after = {path for path in tmp_path.rglob("*") if this_store.root not in path.parents}
    assert imported.new == other_store.keys() == this_store.keys()
    assert after - before == {tmp_path / "evil.tar.gz", this_store.root}
    refused = {name.lstrip("/") for name in imported.refused}
    assert refused == {other, "b" * 16}, "what is no file of a run is passed over"
    assert secret.read_text() == "secret"
    with tarfile.open(tmp_path / "odd.tar", "w") as tar:
        tar.add(other_store.path(key := other_store.keys()[0]), f"../../../{key}")
    assert import_runs(Store(tmp_path / "third"), tmp_path / "odd.tar").new == [key], "it ends in the store"
    assert not (tmp_path.parent / key).exists()


def test_the_same_member_twice_and_far_too_much_are_refused(
    other_store: Store, this_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice, large, good = other_store.keys()
    monkeypatch.setattr(exchange, "LARGEST", 5000)
    extra = [(member(f"{twice}/curve.csv"), b"1"), (member(f"{large}/clients.csv"), b"1" * 5001)]
    imported = import_runs(this_store, pack(tmp_path / "a.tar.gz", other_store, *extra))
    assert imported.new == [good] and imported.refused.keys() == {twice, large}
    monkeypatch.undo()
    monkeypatch.setattr(exchange, "SMALL", 1 << 16)
    zeros = [(member(f"{n:016x}/curve.csv"), bytes(1 << 18)) for n in range(4)]
    with pytest.raises(UserError, match="unpacks to more than 100 times its size"):
        import_runs(this_store, pack(tmp_path / "bomb.tar.gz", other_store, *zeros))
    assert this_store.keys() == [good]


def test_what_is_no_archive_or_may_never_end_is_named(this_store: Store, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.tar")
    for name, content in {"a": b"", "b": b"no archive", "c": b"\x1f\x8b\x08\x00 broken"}.items():
        (tmp_path / name).write_bytes(content)
    for source, says in {
        tmp_path / "a": "(is not an archive of runs|cannot be read|holds no runs)",
        tmp_path / "b": "is not an archive of runs",
        tmp_path / "c": "(is not an archive of runs|cannot be read)",
        tmp_path / "empty": "holds no runs",
        tmp_path / "gone": "does not exist",
        tmp_path / "pipe.tar": "may never end",
        Path("/dev/zero"): "may never end",
    }.items():
        with pytest.raises(UserError, match=f"{source}.*{says}"):
            import_runs(this_store, source)


def header(body: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, len(body)
    return info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % tarfile.BLOCKSIZE)


@pytest.mark.parametrize(
    "lie",
    [
        header(b"1" * 5000 + b" a=b\n"),
        header(b"10 a=bcde\n") * 3000,
        header(b"a" * 600, tarfile.GNUTYPE_LONGNAME) * 3000,
        header(b"13 hdrcharset=\xff\xfe\n"),
        header(b"22 GNU.sparse.map=1,2\n23 GNU.sparse.size=abc\n"),
        header(b"30 size=99999999999999999999\n"),
    ],
    ids=range(6),
)
def test_headers_that_lie_are_one_line(this_store: Store, tmp_path: Path, lie: bytes) -> None:
    """In number, depth, names, encoding, a sparse map, or size; five end in the library's tracebacks."""
    (tmp_path / "a.tar").write_bytes(lie + tarfile.TarInfo("x").tobuf() + bytes(2 * tarfile.BLOCKSIZE))
    with pytest.raises(UserError) as caught:
        import_runs(this_store, tmp_path / "a.tar")
    assert "\n" not in str(caught.value) and "not an archive of runs" in str(caught.value)


class Disk:
    """Sees what reaches the disk, and what is renamed.

    Attributes:
        moved: what took its final name, in order; with what of it was not on the disk.
        unsure: folders whose entries have changed since they were last on the disk.
    """

    def __init__(self) -> None:
        self.moved, self.unsure = list[tuple[Path, set[str]]](), set[Path]()
        self._safe = set[tuple[int, int]]()  # inodes, and when they were written

    def fsync(self, descriptor: int) -> None:
        self._safe.add(_state(os.fstat(descriptor)))
        self.unsure.discard(Path(f"/proc/self/fd/{descriptor}").readlink())

    def rename(self, old: Any, new: Any) -> None:
        old, new = Path(old), Path(new)
        lost = {path.name for path in (old, *old.rglob("*")) if _state(path.stat()) not in self._safe}
        self.moved.append((new, lost))
        self.unsure.add(new.parent)


def _state(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_ino, facts.st_mtime_ns


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The disk, watched."""
    disk = Disk()

    def watch(name: str, see: Any) -> None:
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given: [see(*given), original(*given)])

    watch("fsync", disk.fsync), watch("rename", disk.rename), watch("replace", disk.rename)
    return disk


def test_a_run_that_finished_or_came_and_a_file(
    other_store: Store, this_store: Store, disk: Disk, tmp_path: Path
) -> None:
    runs = [add(this_store, 7), *import_runs(this_store, other_store.root).new]
    files.write(tmp_path / "result.json", "{}")
    named = [*map(this_store.path, runs), tmp_path / "result.json"]
    assert disk.moved == [(path, set()) for path in named] and len(named) == 5
    assert disk.unsure <= {tmp_path}, "a folder of results"
