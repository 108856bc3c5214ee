"""What a set of so many X-rays costs: preparing it, starting a job on it, a job's memory, reading its batches.

    python benchmarks/large.py [--pictures 2000 8000] [--cores 2] [--side 320] [--folder /tmp]

Pictures are synthetic JPEGs of 390 x 320, as those of CheXpert's small edition: 64 different ones, linked. A set of
44,000 takes 5 GB in the folder; all is deleted afterwards. Each job is a process.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
NAME = "xrays"
DIFFERENT = 64
"""Different pictures of a set."""
FULL = 800_000
"""Pictures of the five hospitals of codasca together."""
HEADER = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position\n"


def jpeg(rng: np.random.Generator) -> bytes:
    """Make a picture with soft shapes and noise; as a file it has the size of a real one, 20 kB."""
    from PIL import Image

    coarse = Image.fromarray(rng.integers(0, 256, (12, 10), dtype=np.uint8)).resize(
        (390, 320), Image.Resampling.BICUBIC
    )
    pixels = np.asarray(coarse).astype(int) + rng.normal(0, 6, (320, 390))
    stream = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(stream, "JPEG", quality=80)
    return stream.getvalue()


def make_raw(folder: Path, pictures: int, side: int) -> None:
    """Write a corpus in the layout of ChestX-ray14, three pictures a patient, and the dataset's description."""
    rng = np.random.default_rng(0)
    raw = folder / "data" / "raw" / "chestxray14"
    raw.mkdir(parents=True)
    contents = [jpeg(rng) for _ in range(DIFFERENT)]
    rows = []
    for i in range(pictures):
        place = raw / f"images_{i // 10_000:03}" / f"{i:08}.png"
        if i < DIFFERENT:
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(contents[i])
        else:
            place.parent.mkdir(exist_ok=True)
            place.hardlink_to(raw / "images_000" / f"{i % DIFFERENT:08}.png")
        rows.append(f"{place.name},{'Edema' if i % 3 else 'No Finding'},0,{i // 3},58,M,PA\n")
    (raw / "Data_Entry_2017.csv").write_text(HEADER + "".join(rows))
    (folder / "config" / "datasets").mkdir(parents=True)
    text = f"base: chestxray14\noptions: {{shape: [1, {side}, {side}]}}\n"
    (folder / "config" / "datasets" / f"{NAME}.yaml").write_text(text)


def decoding_alone(folder: Path, side: int, number: int = 400) -> float:
    """Return the processor seconds of reading, decoding and resizing a picture, nothing else."""
    from PIL import Image

    places = sorted((folder / "data" / "raw").rglob("*.png"))[:number]
    begun = time.process_time()
    for place in places:
        with Image.open(io.BytesIO(place.read_bytes())) as picture:
            np.asarray(picture.convert("L").resize((side, side), Image.Resampling.BILINEAR))
    return (time.process_time() - begun) / len(places)


def child(folder: Path, *command: str) -> tuple[str, float, float]:
    """Run a program in the folder; return what it said, its seconds on the clock and of the processor."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    clock, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def private_memory() -> int:
    """Return the bytes of this process that no other shares, and that stay when the page cache is emptied."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


def job(where: str, side: int, steps: int = 30) -> None:
    """Start a run as a training job does, until its first batch is there; then read batches with crop and flip."""
    begun = time.perf_counter()
    import torch

    from fedbench.data.clients import ClientData
    from fedbench.net import build_network
    from fedbench.spec import DataSpec, NetworkSpec, RunSpec, TrainSpec
    from fedbench.train.training import load_arrays

    torch.set_num_threads(1)
    train = {"rounds": 100, "period": steps, "batch_size": 32, "augment": "crop_flip"}
    labels = {"rule": "named", "positive": ["edema"]}
    spec = RunSpec(
        data=DataSpec(dataset=NAME, clients=4, labels=labels, partition={"rule": "even"}), seed=0, method="fedavg",
        params={"lr": 0.1}, network=NetworkSpec(name="resnet18"), train=TrainSpec(**train),
    )  # fmt: skip
    arrays = load_arrays(spec, "data")
    build_network("resnet18", (1, side, side), 1, 0)
    data = ClientData(arrays, spec.train, 0, torch.device("cpu"), where)
    data.work([0], 0, "batches").batch(0)
    facts = {
        "where": data.where,
        "start": time.perf_counter() - begun,
        "start_processor": time.process_time(),
    }
    clock, processor, number = time.perf_counter(), time.process_time(), 0
    for client in range(4):
        work = data.work([client], 1, "batches")
        number += sum(work.batch(step).labels.numel() for step in range(work.steps))
    facts |= {
        "clock": (time.perf_counter() - clock) / number,
        "processor": (time.process_time() - processor) / number,
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(facts | {"private": private_memory(), "peak": peak}))


def measure(pictures: int, cores: int, side: int, parent: str | None) -> dict[str, float]:
    """Print what a set of one size costs, and return what grows with it."""
    with tempfile.TemporaryDirectory(prefix="fedbench-large-", dir=parent) as place:
        folder = Path(place)
        make_raw(folder, pictures, side)
        alone = decoding_alone(folder, side)
        options = ["--data-dir", "data", "--cores", str(cores)]
        _, clock, spent = child(folder, str(ROOT / "data_prep" / "prepare.py"), NAME, *options)
        print(f"{pictures:,} pictures, {pictures * side * side / 1e9:.2f} GB prepared, {cores} processes")
        print(
            f"  decoding alone {1e3 * alone:.2f} ms of processor a picture: {1 / alone:,.0f} a second and core"
        )
        print(f"  prepared in {clock:.1f} s and {spent:.1f} of processor, ", end="")
        print(f"{1e3 * spent / pictures:.2f} ms a picture: {alone * pictures / spent:.2f} of decoding alone")
        costs, me = {"prepare, processor": spent}, str(Path(__file__).resolve())
        for where in ("first", "host", "device"):
            if where == "device" and pictures * side * side > 1 << 30:
                continue
            if where == "first":  # nobody has hashed it yet
                for stamp in (folder / "data" / "prepared").glob(".*.stamp"):
                    stamp.unlink()
            said, _, _ = child(
                folder, me, "--job", "host" if where == "first" else where, "--side", str(side)
            )
            facts = json.loads(said)
            print(
                f"  job, inputs {where} ({facts['where']}): first batch after {facts['start']:.1f} s, ",
                end="",
            )
            print(
                f"{facts['start_processor']:.1f} of processor; private memory {facts['private'] / 1e9:.2f} GB, ",
                end="",
            )
            print(
                f"with shared pages at most {facts['peak'] / 1e9:.2f}; {1 / facts['processor']:,.0f} pictures ",
                end="",
            )
            print(f"a second of processor, {1 / facts['clock']:,.0f} of the clock", flush=True)
            costs |= {f"{name}, {where}": facts[name] for name in ("start_processor", "private")}
        return costs


def main() -> None:
    """Measure each size, then fit a line to what grows and say what the full size takes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pictures", type=int, nargs="+", default=[2000, 8000])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--side", type=int, default=320)
    parser.add_argument(
        "--folder", help="where the sets are made and deleted; the system's folder for such without it"
    )
    parser.add_argument("--job", choices=["auto", "device", "host"])
    options = parser.parse_args()
    if options.job:
        job(options.job, options.side)
        return
    rows = {n: measure(n, options.cores, options.side, options.folder) for n in options.pictures}
    common = sorted(set.intersection(*(set(row) for row in rows.values())))
    for name in common if len(rows) > 1 else ():
        slope, base = np.polyfit([*rows], [row[name] for row in rows.values()], 1)
        print(f"{name}: {base:.3g} + {slope:.3g} a picture; {base + slope * FULL:.3g} for {FULL:,}")


if __name__ == "__main__":
    main()
