"""A whole SLURM on this machine: its own authentication, controller and node, in one folder, for the length of a test.

Nothing outside the folder is read or written: other SLURM set-ups on the machine are neither used nor disturbed. Runs
as any user, without systemd and without cgroups.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
SBIN = f"/usr/sbin{os.pathsep}/usr/local/sbin"

CONF = """\
ClusterName=onenode
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SchedulerParameters=sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ReturnToService=2
KillWait=20
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=100000 Gres=gpu:pretend:{cards} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """Name the programs of SLURM and munge that this machine lacks."""
    path = os.pathsep.join([os.environ.get("PATH", ""), SBIN])
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


class OneNode:
    """A running SLURM of one node with pretended GPUs.

    Args:
        cpus: processors that the node says it has, whatever the machine has.
        cards: GPUs that the node says it has, at most two.
    """

    def __init__(self, cpus: int = 4, cards: int = 2) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="onenode-", dir="/tmp"))  # a socket's path has to be short
        conf, programs = self.folder / "slurm.conf", self.folder / "bin"
        path = os.pathsep.join([str(programs), os.environ.get("PATH", ""), SBIN])
        self.environment = {**os.environ, "PATH": path, "SLURM_CONF": str(conf)}
        host = socket.gethostname().partition(".")[0]
        ports = _free_ports(2)
        self._write(
            "slurm.conf",
            CONF.format(
                host=host, user=getpass.getuser(), folder=self.folder, cpus=cpus, cards=cards,
                controller_port=ports[0], node_port=ports[1],
            ),
        )  # fmt: skip
        # each card needs a device file; any will do
        devices = ["/dev/null", "/dev/zero"][:cards]
        lines = [f"NodeName={host} Name=gpu Type=pretend File={device}" for device in devices]
        self._write("gres.conf", "\n".join(["AutoDetect=off", *lines]) + "\n")
        for name in ("state", "spool", "bin"):
            (self.folder / name).mkdir()
        # Snakemake starts a job's steps without SLURM_CONF; most clusters have theirs in the default place
        self._write("bin/srun", f'#!/bin/sh\nSLURM_CONF={conf} exec {shutil.which("srun")} "$@"\n')
        (programs / "srun").chmod(0o755)
        (self.folder / "munge.key").write_bytes(secrets.token_bytes(128))
        (self.folder / "munge.key").chmod(0o600)

    def __enter__(self) -> OneNode:
        try:
            files = {name: self.folder / f"munge.{name}" for name in ("socket", "key", "log", "pid", "seed")}
            options = [f"--{name}-file={files[name]}" for name in ("key", "log", "pid", "seed")]
            self.run("munged", "--force", f"--socket={files['socket']}", *options)
            self.run("slurmctld", "-i")
            self.run("slurmd")
            self.wait(lambda: self.run("sinfo", "-h", "-o", "%t", check=False).strip() == "idle", "the node")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(subprocess.SubprocessError):
            self.run("scancel", "--state=PENDING,RUNNING", f"--user={getpass.getuser()}", check=False)
        for name in ("slurmd.pid", "slurmctld.pid", "munge.pid"):
            with contextlib.suppress(OSError, ValueError):
                pid = int((self.folder / name).read_text())
                os.kill(pid, signal.SIGTERM)
                _wait_for_end(pid)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command: str, check: bool = True) -> str:
        # the daemons keep an inherited output open for ever: they get none of ours
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                command,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
            )
            output.seek(0)
            said = output.read()
        if check and done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command)} ended with status {done.returncode}: {said}{self.logs()}"
            )
        return said

    def wait(self, reached: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait until ``reached`` says so; after ``seconds`` it is an error that names ``what``."""
        end = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > end:
                raise TimeoutError(f"waited {seconds:.0f} s for {what}{self.logs()}")
            time.sleep(0.02)

    def jobs(self) -> dict[str, dict[str, str]]:
        """All jobs since the start, finished ones too, by their number: what ``scontrol show job`` says of each."""
        collected = {}
        for line in self.run("scontrol", "--oneliner", "show", "job", check=False).splitlines():
            facts = dict(part.split("=", 1) for part in line.split(" ") if "=" in part)
            if "JobId" in facts:
                collected[facts["JobId"]] = facts
        return collected

    def logs(self) -> str:
        """The last lines of the daemons' logs."""
        names = ("slurmctld.log", "slurmd.log", "munge.log")
        texts = {name: self.folder / name for name in names if (self.folder / name).exists()}
        return "".join(f"\n{name}: ...{path.read_text()[-1500:]}" for name, path in texts.items())

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for part in sockets:
            part.bind(("127.0.0.1", 0))
        return [part.getsockname()[1] for part in sockets]


def _wait_for_end(pid: int, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
