"""``python -m memfathom``: the program."""

from __future__ import annotations

import os
import sys

from ._library import find_program, run_main


def main() -> int:
    program = find_program()
    if program is None:
        return run_main(sys.argv[1:])
    # Some commands start the program again, which is only there as a program.
    os.execv(program, ["memfathom", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
