"""The door of all commands: python -m icl_lab COMMAND, as `icl-lab COMMAND`."""

import sys

from icl_lab.lab.commands import main

if __name__ == "__main__":
    sys.exit(main())
