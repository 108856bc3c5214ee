"""Tasks, one file each, which defines the class ``Task``.

Another package adds a task through an entry point of the group ``fedbench.tasks``.
"""

from __future__ import annotations

import sys

from fedbench import registry
from fedbench.errors import UserError
from fedbench.method import FederatedMethod
from fedbench.spec import TaskSpec
from fedbench.task import Task

DEFAULT = "classification"


def make_task(spec: TaskSpec | None) -> Task:
    """Build the task of a run from its options; a run without a task classifies.

    Raises:
        UserError: unknown task, or options that are missing, misspelt or of a wrong kind.
    """
    spec = spec or TaskSpec(name=DEFAULT)
    task = registry.find(sys.modules[__name__], "task", spec.name, "Task")
    return registry.filled(task, Task, f"task {spec.name!r}", "option", spec.options)


def check_fit(method: FederatedMethod, task: Task, method_name: str, spec: TaskSpec | None) -> None:
    """Refuse a method on a task whose batches the method cannot read.

    Raises:
        UserError: the method and the task do not fit; the message says which kind of task the method takes.
    """
    if not isinstance(task, method.task):
        name = spec.name if spec else DEFAULT
        raise UserError(
            f"method {method_name!r} works on {method.task.kind}; task {name!r} has {task.kind}. "
            "Choose another method, or another task for it (task: null is classification)"
        )
