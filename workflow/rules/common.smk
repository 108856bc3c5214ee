"""What the rules ask: ties this call's configuration and Snakemake's own objects to `fedbench.workflow`."""

import gc
import os
import sys
from pathlib import Path

from fedbench.train import stale_locks
from fedbench.workflow.rule_functions import RuleFunctions, or_exit
from fedbench.workflow.training import Training

# `fedbench` and `python` in the rules are those of the environment that runs Snakemake, activated or not
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))

CALL = RuleFunctions(workflow, config)
TRAINING = Training(workflow, CALL)

if workflow.is_main_process:
    gc.disable()  # until jobs begin: a collection goes through all jobs so far, and these stay
    or_exit(stale_locks.put_right, CALL.config.data_dir)
