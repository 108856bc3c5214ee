"""A folder of pictures and a table that lists them, without code."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from raw_files import dicom

from fedbench.data import datasets, decoding, files
from fedbench.data.prepared import Prepared, load_prepared, prepare
from fedbench.errors import ReadError, UserError
from fedbench.train import preflight

KEYS = (
    "label: finding\nsite: hospital\ngroup: patient\nimages: scans\nsize: [6, 4]\ngrey: true\nmissing: drop\n"
)


@pytest.fixture(autouse=True)
def folder(own_folder: Path) -> None:
    """Forty pictures of twenty patients: picture n is of the grey level 5 n."""
    rows = ["path,finding,other,patient,hospital"]
    for n in range(40):
        place = Path("scans", f"ward{n % 3}", f"{n}.png")
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (9, 7), 5 * n).save(place)
        finding = "" if n == 39 else ["0", "1", "-1"][n // 2 % 3]
        rows.append(f"ward{n % 3}/{n}.png,{finding},1,P{n // 2},{'AB'[n // 2 % 2]}")
    Path("scans.csv").write_text("\n".join(rows))


def load(keys: str = KEYS) -> Prepared:
    Path("config/datasets/scans.yaml").write_text(f"file: scans.csv\n{keys}")
    prepare("scans", "data")
    return load_prepared("scans", "data")


def level(read: Prepared) -> dict[int, int]:
    """The label of each picture by its grey level."""
    pairs = ((read.x_train, read.y_train), (read.x_test, read.y_test))
    return {int(x[0, 0, 0]): int(label) for part, y in pairs for x, label in zip(part, y, strict=True)}


def test_each_picture_keeps_its_label_site_and_patient() -> None:
    read = load(KEYS + "classes: {0: absent, 1: present, -1: present}\npositive: present\n")
    assert read.x_train.shape[1:] == (1, 6, 4) and read.x_train.dtype == np.uint8
    assert read.classes == ("absent", "present") and read.sites == ("A", "B")
    assert level(read) == {5 * n: int(n // 2 % 3 > 0) for n in range(39)}
    parts = [{int(x[0, 0, 0]) // 10 for x in part} for part in (read.x_train, read.x_test)]
    assert not parts[0] & parts[1] and len(parts[0] | parts[1]) == 20  # patients
    assert "1 of 40 rows have an empty cell and were left out" in read.notes


def test_its_shape_and_classes_are_known_before_a_picture_is_read() -> None:
    Path("config/datasets/scans.yaml").write_text(f"file: scans.csv\n{KEYS}")
    for path in Path("scans").rglob("*.png"):
        path.write_bytes(b"")
    assert preflight.facts("scans") == ((1, 6, 4), 3)
    assert datasets.get("scans").site_names() == ("A", "B")


def test_sixteen_bits_dicom_and_a_turned_photograph() -> None:
    """A photograph whose tag says that it lies on its side is turned; more than 8 bits are stretched."""
    turned = Image.new("L", (4, 6), 0)
    turned.paste(255, (0, 0, 4, 3))  # its upper half is white
    tags = Image.Exif()
    tags[0x0112] = 6  # to be turned by a quarter, clockwise
    turned.transpose(Image.Transpose.ROTATE_90).save("scans/ward0/0.jpg", exif=tags, quality=100)
    deep = np.repeat(np.array([[1000], [3000]], np.uint16), 3, 0).repeat(4, 1)
    Image.fromarray(deep).save("scans/ward1/1.png")
    Path("scans/ward2/2.dcm").write_bytes(dicom(deep))
    table = Path("scans.csv")
    table.write_text(table.read_text().replace("0/0.png", "0/0.jpg").replace("2/2.png", "2/2.dcm"))
    read = load()
    result = [x[0].astype(int) for part in (read.x_train, read.x_test) for x in part]
    halves = [x for x in result if np.ptp(x) > 200]
    assert len(halves) == 3
    assert sorted(int(x[0].mean()) for x in halves)[:2] == [0, 0]  # stretched: the upper half is dark
    assert max(int(x[0].mean()) for x in halves) > 250  # turned: the upper half is white


def test_a_changed_picture_changes_the_key_and_another_time_does_not() -> None:
    """It is seen in a linked folder, too; a link that leads back is not followed."""
    Path("scans/ward0").rename("elsewhere")
    Path("scans/ward0").symlink_to(Path("elsewhere").resolve())
    Path("scans/ward1/back").symlink_to(Path("scans").resolve())
    load()
    before, path = datasets.get("scans").content(), Path("elsewhere/0.png")
    os.utime(path, (1, 1))
    assert datasets.get("scans").content() == before
    Image.new("L", (9, 7), 1).save(path)
    assert datasets.get("scans").content() != before
    assert 1 in level(load())


def test_a_picture_that_cannot_be_read_now_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path) -> str:
        raise OSError(errno.EIO, "Input/output error", str(path))

    Path("config/datasets/scans.yaml").write_text(f"file: scans.csv\n{KEYS}")
    monkeypatch.setattr(files, "checksum", fails)
    with pytest.raises(ReadError, match=r"cannot read scans/ward0/0\.png now"):
        datasets.get("scans").content()


@pytest.mark.parametrize("place", ["ward1/gone.png", "ward0/../../other.png", "{here}/other.png"])
def test_a_picture_that_is_not_in_the_folder_is_refused(tmp_path: Path, place: str) -> None:
    Path("scans/ward1/7.png").rename("other.png")
    place = place.format(here=tmp_path)
    Path("scans.csv").write_text(Path("scans.csv").read_text().replace("ward1/7.png", place))
    with pytest.raises(UserError, match=rf"scans lacks 1 of .*scans\.csv lists, such as '{place}'"):
        load()


def test_hidden_files_are_no_data_and_the_folder_may_be_this_one() -> None:
    load()
    before = datasets.content("scans")
    Path("scans/.DS_Store").write_bytes(b"1")
    Path("scans/.thumbs").mkdir()
    Path("scans/.thumbs/0.png").write_bytes(b"1")
    assert datasets.content("scans") == before
    keys = KEYS.replace("images: scans", "images: .").replace("path", "place")
    Path("scans.csv").write_text(Path("scans.csv").read_text().replace("ward", "scans/ward"))
    assert load(keys).x_train.shape[1:] == (1, 6, 4)


def test_a_table_that_is_saved_while_it_is_prepared_is_prepared_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Path("scans.csv")
    first, pictures = table.read_text(), decoding.Pictures.load

    def saved_meanwhile(*args: Any) -> Any:
        table.write_text(first.replace("ward0/0.png,0", "ward0/0.png,1"))
        return pictures(*args)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(decoding.Pictures, "load", saved_meanwhile)
        assert level(load())[0] == 1  # of the classes -1, 0 and 1
    assert level(load())[0] == 2
