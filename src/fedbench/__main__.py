"""``python -m fedbench`` is ``fedbench``."""

from fedbench.cli import main

main()
