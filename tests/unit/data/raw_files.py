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
    result, buffer = pydicom.Dataset(), io.BytesIO()
    result.SOPClassUID, result.file_meta = "1.2.3", pydicom.dataset.FileMetaDataset()
    result.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    result.set_pixel_data(pixels.astype(np.uint16), f"MONOCHROME{1 if inverted else 2}", 12)
    result.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def put_all(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        put(folder / name, content.encode() if isinstance(content, str) else content)
    return folder


def chexpert(edition: str = "CheXpert-v1.0-small") -> dict[str, str | bytes]:
    """Both tables and their pictures; a finding is there (1), not there (0), uncertain (-1) or not spoken of."""
    findings = "Cardiomegaly,Lung Opacity,Lung Lesion,Edema,Consolidation,Atelectasis,Pleural Effusion"
    head, study = f"Path,Sex,Frontal/Lateral,{findings}\n", "study1/view1_frontal.jpg"
    first, second, third = (f"{edition}/train/patient0000{k}/{study}" for k in (1, 2, 3))
    valid = f"{edition}/valid/patient64541/{study}"
    rows = f"""{first},Female,Frontal,1.0,,,-1.0,,,0.0
{first.replace("1_frontal", "2_lateral")},Female,Lateral,1.0,,,,,,
{second},Male,Frontal,-1.0,,,,1.0,-1.0,1.0
{third},Male,Frontal,,,,1,-1.0,,-1.0
"""
    pictures = {first: png(10), second: png(20), third: png(30), valid: png(70)}
    tables = {"train.csv": head + rows, "valid.csv": f"{head}{valid},Male,Frontal,0.0,,,0.0,1.0,0.0,0.0\n"}
    return {**tables, **pictures}


def nih(header: str) -> dict[str, str | bytes]:
    rows = "00000001_000.png,{0},0,1,58,M,PA\n00000001_001.png,{1},1,1,58,M,AP\n00000002_000.png,{2},0,2,80,F,PA\n"
    text = rows.format("Cardiomegaly|Effusion", "No Finding", "Hernia|Edema|Consolidation|Atelectasis")
    names = ("00000001_000", "00000001_001", "00000002_000")
    pictures = {f"images_00{i % 2 + 1}/images/{name}.png": png(10 * i + 10) for i, name in enumerate(names)}
    head = f"Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,{header}"
    return {"table": f"{head}\n{text}", **pictures}
