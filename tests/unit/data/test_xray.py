"""Chest X-rays: each corpus is read from small files in its official format, and says what is wrong with them."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raw_files import SIZE, chexpert, dicom, nih, png, put_all, small

from fedbench.data.datasets._xray import CLASSES, FINDINGS, drawn
from fedbench.data.decoding import Pictures
from fedbench.data.picture import Form
from fedbench.errors import UserError


def findings(table: pd.DataFrame) -> list[str]:
    """Each row's findings in a word."""
    return [
        CLASSES[sum(int(row[name]) << i for i, name in enumerate(FINDINGS))] for _, row in table.iterrows()
    ]


@pytest.mark.parametrize("edition", ["CheXpert-v1.0-small", "CheXpert-v1.0"])
@pytest.mark.parametrize("packed", [False, True])
def test_chexpert_with_its_official_part(tmp_path: Path, edition: str, packed: bool) -> None:
    files = chexpert(edition)
    if packed:
        with zipfile.ZipFile(tmp_path / "chexpert.zip", "w") as archive:
            for name in [name for name in files if name.endswith(".jpg")]:
                archive.writestr(name, files.pop(name))
    dataset = small("chexpert_valid")
    arrays = dataset.prepare(put_all(tmp_path, files))
    # uncertain: ones for edema and atelectasis, zeros for the others; positives of two findings twice
    expected = ["cardiomegaly+edema", "consolidation+atelectasis+effusion", "edema"]
    expected += ["cardiomegaly+edema", "consolidation+atelectasis+effusion"]
    assert [CLASSES[code] for code in arrays.y_train] == expected
    assert arrays.group_train is not None and arrays.group_train.tolist() == [0, 1, 2, 0, 1]
    assert [CLASSES[code] for code in arrays.y_test] == ["consolidation"]
    assert arrays.x_train.shape == (5, 1, SIZE, SIZE) and arrays.x_train.dtype == np.uint8
    assert arrays.x_train[:, 0, 0, -1].tolist() == [10, 20, 30, 10, 20] and arrays.x_test[0, 0, 0, -1] == 70
    assert dataset.raw_dir(Path("data")) == Path("data/raw/chexpert")


def test_chexpert_by_patients_and_with_other_policies(tmp_path: Path) -> None:
    put_all(tmp_path, chexpert())
    arrays = small("chexpert", test_share=0.3).prepare(tmp_path)
    assert len(arrays.y_test) == 1  # a third of three patients, and not twice
    zeros = small("chexpert", uncertain={})
    assert findings(zeros.studies(tmp_path)) == ["cardiomegaly", "consolidation+effusion", "edema"]
    ignoring = small("chexpert", uncertain={"edema": "ignore", "effusion": "ones"})
    assert findings(ignoring.studies(tmp_path)) == ["consolidation+effusion", "edema+effusion"]
    table = tmp_path / "train.csv"
    table.write_text(table.read_text().replace("1.0,,,-1.0", "1.0,,,2"))
    with pytest.raises(UserError, match=r"train\.csv, column 'Edema': label '2' is none of"):
        zeros.studies(tmp_path)


@pytest.mark.parametrize(
    ("name", "header", "ends"),
    [("Data_Entry_2017.csv", "Patient Gender,View Position", "\n"),
     ("Data_Entry_2017_v2020.csv", "Patient Sex,View Position", "\r\n")],
)  # fmt: skip
def test_chestxray14(tmp_path: Path, name: str, header: str, ends: str) -> None:
    files = nih(header)
    table = str(files.pop("table")).replace("\n", ends)
    put_all(tmp_path, {name: b"\xef\xbb\xbf" + table.encode(), **files})
    dataset = small("chestxray14")
    assert findings(dataset.studies(tmp_path)) == [
        "cardiomegaly+effusion", "none", "edema+consolidation+atelectasis",
    ]  # fmt: skip
    arrays = dataset.prepare(tmp_path)
    assert sorted([*arrays.x_train[:, 0, 0, -1], *arrays.x_test[:, 0, 0, -1]]) == [10, 20, 30]
    assert {len(arrays.y_train), len(arrays.y_test)} == {1, 2}  # patients are whole
    put_all(tmp_path / "raw" / "chestxray14", {name: (tmp_path / name).read_bytes()})
    counts = dataset.count_labels(tmp_path)
    assert counts is not None and sum(counts.values()) == 3
    assert counts["cardiomegaly+effusion"] == counts["edema+consolidation+atelectasis"] == counts["none"] == 1
    assert dataset.count_labels(tmp_path / "elsewhere") is None


@pytest.mark.parametrize("gzipped", [False, True])
def test_padchest(tmp_path: Path, gzipped: bool) -> None:
    labels = (
        '''"['cardiomegaly', ' laminar atelectasis']"''', '''"['normal']"''', '""',
        '''"['pulmonary edema', 'pleural effusion', 'loc right']"''', '''"['pericardial effusion', 'pseudonodule']"''',
    )  # fmt: skip
    views = ("PA", "AP_horizontal", "PA", "AP", "PA")
    pairs = enumerate(zip(views, labels, strict=True))
    rows = [f"{i},p{i}.png,0,7{i // 2},{view},{label}" for i, (view, label) in pairs]
    rows.append("9,lateral.png,0,70,L,\"['cardiomegaly']\"")
    table = "\n".join([",ImageID,ImageDir,PatientID,Projection,Labels", *rows]) + "\n"
    name = small("padchest").tables[gzipped]
    pictures: dict[str, str | bytes] = {f"{i}/p{i}.png": png(4000 * (i + 1), bits=16) for i in range(5)}
    put_all(tmp_path, {name: gzip.compress(table.encode()) if gzipped else table, **pictures})
    dataset = small("padchest")
    expected = ["cardiomegaly+atelectasis", "none", "none", "edema+effusion", "none"]
    assert findings(dataset.studies(tmp_path)) == expected
    arrays = dataset.prepare(tmp_path)
    assert set(arrays.x_train[:, 0, 0, -1].tolist()) == {255} and arrays.x_train[:, 0, 0, 0].max() == 0


def test_mimic_cxr(tmp_path: Path) -> None:
    names = "subject_id,study_id,Atelectasis,Cardiomegaly,Consolidation,Edema,Pleural Effusion"
    said = f"{names}\n10,50,-1.0,1.0,,,0.0\n11,51,,,,-1.0,1.0\n"
    views = "dicom_id,subject_id,study_id,ViewPosition\na,10,50,PA\nb,10,50,LATERAL\nc,11,51,AP\nd,12,52,PA\n"
    tables = {"chexpert": said, "metadata": views}
    packed = {f"mimic-cxr-2.0.0-{name}.csv.gz": gzip.compress(text.encode()) for name, text in tables.items()}
    places = ("p10/p10/s50/a.jpg", "p10/p10/s50/b.jpg", "p11/p11/s51/c.jpg")
    put_all(tmp_path, packed | {f"files/{place}": png(10 * i) for i, place in enumerate(places)})
    dataset = small("mimic_cxr")
    table = dataset.studies(tmp_path)
    assert table["image"].tolist() == ["a.jpg", "c.jpg"]
    assert findings(table) == ["cardiomegaly+atelectasis", "edema+effusion"]
    assert len(dataset.prepare(tmp_path).y_train) == 1


def vindr(by_box: bool) -> str:
    """Three radiologists; of picture a one says cardiomegaly and two effusion, of b nobody anything."""
    if by_box:
        seen = (("Cardiomegaly", 1), ("Pleural effusion", 1), ("Pleural effusion", 2), ("No finding", 3))
        rows = [f"a,{name},0,R{k}" for name, k in seen] + [f"b,No finding,14,R{k}" for k in (1, 2, 3)]
        return "\n".join(["image_id,class_name,class_id,rad_id", *rows])
    names = "image_id,rad_id,Atelectasis,Cardiomegaly,Consolidation,Pleural effusion,No finding"
    rows = ["a,R1,0,1,0,1,0", "a,R2,0,0,0,1,0", "a,R3,0,0,0,0,1", *(f"b,R{k},0,0,0,0,1" for k in (1, 2, 3))]
    return "\n".join([names, *rows])


@pytest.mark.parametrize("by_box", [True, False])
def test_three_radiologists(tmp_path: Path, by_box: bool) -> None:
    name = "train.csv" if by_box else "image_labels_train.csv"
    put_all(tmp_path, {name: vindr(by_box), "train/a.png": png(10), "train/b.png": png(20)})
    assert findings(small("chestxray_ad").studies(tmp_path)) == ["cardiomegaly+effusion", "none"]
    assert findings(small("chestxray_ad", vote="majority").studies(tmp_path)) == ["effusion", "none"]
    assert len(small("chestxray_ad").prepare(tmp_path).y_test) == 1


@pytest.mark.parametrize(("inverted", "sides"), [(False, [0, 255]), (True, [255, 0])])
def test_dicom_is_stretched_and_inverted_where_white_is_zero(
    tmp_path: Path, inverted: bool, sides: list[int]
) -> None:
    pixels = np.zeros((SIZE, SIZE), np.uint16)
    pixels[:, SIZE // 2 :] = 3000
    put_all(tmp_path, {"a.dicom": dicom(pixels, inverted)})
    loaded = Pictures(tmp_path).load(["a.dicom"], Form((SIZE, SIZE), grey=True))
    assert loaded[0, 0, 0, [0, -1]].tolist() == sides


def test_without_pydicom_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    put_all(tmp_path, {"a.dicom": b"anything"})
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(UserError, match=r"pydicom: pip install 'fedbench-suite\[vision\]'"):
        Pictures(tmp_path).load(["a.dicom"], Form((SIZE, SIZE), grey=True))


FIRST = "images_001/images/00000001_000.png"


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        (lambda files: files.pop(FIRST), r"lacks 1 of the 3 pictures that Data_Entry_2017\.csv lists"),
        (lambda files: files.update({FIRST: png(5)[:40]}), r"00000001_000\.png is not a readable picture"),
        (("Patient ID", "Patient"), r"Data_Entry_2017\.csv has no column 'Patient ID'"),
        (("Effusion", "Efusion"), r"unknown finding 'Efusion'\. Did you mean 'Effusion'"),
        (("00000001_001.png", "00000001_000.png"), r"Data_Entry_2017\.csv lists 00000001_000\.png twice"),
        ((",2,80", ",1,80"), "a test part of whole patients needs two patients"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, slip: Any, said: str) -> None:
    files = nih("Patient Gender,View Position")
    if isinstance(slip, tuple):
        files["table"] = str(files["table"]).replace(*slip)
    else:
        slip(files)
    put_all(tmp_path, {"Data_Entry_2017.csv": files.pop("table"), **files})
    with pytest.raises(UserError, match=said):
        small("chestxray14").prepare(tmp_path)


def test_test_patients_are_the_same_each_time_and_about_the_share() -> None:
    patients = pd.Series(np.repeat([f"p{i:03}" for i in range(200)], np.arange(200) % 5 + 1))
    chosen = drawn(patients, 0.05, "corpus")
    assert patients[chosen].nunique() == 10 and (chosen == drawn(patients, 0.05, "corpus")).all()
    assert not set(patients[chosen]) & set(patients[~chosen])
    assert (drawn(patients, 0.05, "another") != chosen).any()
