"""Started as `python3 -I -B DIRECTORY`, which puts that directory on the path; its parent belongs there."""

import sys
from pathlib import Path

sys.path[:1] = []
sys.path.append(str(Path(__file__).resolve().parent.parent))

from cab_tests.command import main  # noqa: E402 - found by the path above

sys.exit(main(sys.argv[1:]))
