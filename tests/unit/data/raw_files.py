"""Raw files as their sources have them, made small."""

from __future__ import annotations

import dataclasses
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fedbench.data import datasets
from fedbench.data.datasets._xray import XraySet
from fedbench.data.prepared import Prepared

OwnTable = Callable[..., Prepared]


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def tar_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def encoded(pixels: np.ndarray, form: str = "PNG", **how: Any) -> bytes:
    """A picture file of pixels [H, W] or [H, W, 3]."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, form, **how)
    return buffer.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


SIZE = 8


def small(name: str, **changes: Any) -> XraySet:
    """The dataset, with pictures of 8 x 8."""
    dataset: Any = datasets.get(name)
    changed: XraySet = dataclasses.replace(dataset, shape=(1, SIZE, SIZE), **changes)
    return changed


def png(value: int, bits: int = 8) -> bytes:
    """A picture whose left half is 0 and right half ``value``."""
    pixels = np.zeros((SIZE, SIZE), np.uint16 if bits == 16 else np.uint8)
    pixels[:, SIZE // 2 :] = value
    return encoded(pixels)


def dicom(pixels: np.ndarray, inverted: bool = False) -> bytes:
    """A file of pixels [H, W] of 12 bits; ``inverted``: white is 0."""
    pydicom = pytest.importorskip("pydicom")
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian

    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = meta.MediaStorageSOPInstanceUID = "1.2.3"
    result = FileDataset("x", {}, file_meta=meta, preamble=b"\0" * 128)
    result.Rows, result.Columns = pixels.shape
    result.SamplesPerPixel, result.PixelRepresentation = 1, 0
    result.BitsAllocated, result.BitsStored, result.HighBit = 16, 12, 11
    result.PhotometricInterpretation = "MONOCHROME1" if inverted else "MONOCHROME2"
    result.PixelData = pixels.astype(np.uint16).tobytes()
    stream = io.BytesIO()
    pydicom.dcmwrite(stream, result, enforce_file_format=True)
    return stream.getvalue()


def put_all(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        put(folder / name, content.encode() if isinstance(content, str) else content)
    return folder


HEADER = (
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,Lung Lesion,"
    "Edema,Consolidation,Pneumonia,Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,Fracture,Support Devices\n"
)


def chexpert_row(path: str, view: str, cardio: str, edema: str, cons: str, atel: str, effusion: str) -> str:
    return f"{path},Female,68,{view},AP,,,{cardio},,,{edema},{cons},,{atel},,{effusion},,,\n"


def chexpert(folder: Path, edition: str = "CheXpert-v1.0-small") -> dict[str, str | bytes]:
    view = "train/patient0000{}/study1/view1_frontal.jpg"
    rows = [
        chexpert_row(f"{edition}/{view.format(1)}", "Frontal", "1.0", "-1.0", "", "", "0.0"),
        chexpert_row(
            f"{edition}/train/patient00001/study1/view2_lateral.jpg", "Lateral", "1.0", "", "", "", ""
        ),
        chexpert_row(f"{edition}/{view.format(2)}", "Frontal", "-1.0", "", "1.0", "-1.0", "1.0"),
        chexpert_row(f"{edition}/{view.format(3)}", "Frontal", "", "1", "-1.0", "", "-1.0"),
    ]
    valid = chexpert_row(
        f"{edition}/valid/patient64541/study1/view1_frontal.jpg", "Frontal", "0.0", "0.0", "1.0", "0.0", "0.0"
    )
    pictures = {f"{edition}/{view.format(k)}": png(10 * k) for k in (1, 2, 3)}
    pictures[f"{edition}/valid/patient64541/study1/view1_frontal.jpg"] = png(70)
    return {"train.csv": HEADER + "".join(rows), "valid.csv": HEADER + valid, **pictures}


def nih(header: str) -> dict[str, str | bytes]:
    rows = "00000001_000.png,{0},0,1,58,M,PA\n00000001_001.png,{1},1,1,58,M,AP\n00000002_000.png,{2},0,2,80,F,PA\n"
    text = rows.format("Cardiomegaly|Effusion", "No Finding", "Hernia|Edema|Consolidation|Atelectasis")
    names = ("00000001_000", "00000001_001", "00000002_000")
    pictures = {f"images_00{i % 2 + 1}/images/{name}.png": png(10 * i + 10) for i, name in enumerate(names)}
    return {
        "table": f"Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,{header}\n{text}",
        **pictures,
    }
