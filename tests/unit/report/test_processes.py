"""Studies that are shown together: their processes end with the one that began them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from fedbench.files import alive

PROGRAM = """
import os, time
os.cpu_count = lambda: 2
from fedbench.report.processes import at_once

def work(n):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece
    time.sleep(0 if n else 3600)

list(at_once(work, range(3)))
"""


def test_they_end_when_the_first_is_killed() -> None:
    """One is at work, and one waits for more."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = {int(process.stdout.readline()) for _ in range(3)}
    process.kill()
    process.wait()
    end = time.monotonic() + 60
    while any(map(_runs, pids)) and time.monotonic() < end:
        time.sleep(0.1)
    left = [pid for pid in pids if _runs(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def _runs(pid: int) -> bool:
    """Say whether a process lives; a dead one that nobody has waited for does not."""
    if not alive(pid):
        return False
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")
