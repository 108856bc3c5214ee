"""``python -m fedbench`` is ``fedbench``."""

from fedbench.commands.cli import main

if __name__ == "__main__":
    main()
