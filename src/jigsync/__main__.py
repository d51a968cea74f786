"""`python -m jigsync` is `jigsync`."""

from __future__ import annotations

import sys

from jigsync.cli import main

if __name__ == "__main__":
    sys.exit(main())
