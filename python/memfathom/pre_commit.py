"""The pre-commit hook: every changed configuration must fit on its GPU (.pre-commit-hooks.yaml).

python -m memfathom.pre_commit [--gpu NAME] [--strict] FILE...
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Optional

from . import Error
from ._session import default_session


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="memfathom-fits", description="Checks that jobs fit on a GPU.")
    parser.add_argument("--gpu", help="the GPU, unless the file names its own")
    parser.add_argument("--strict", action="store_true", help="a job that is tight or undecided fails too")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args(arguments)
    failed = 0
    for file in options.files:
        try:
            estimate = default_session().estimate(file, gpu=options.gpu)
        except Error as error:
            print(f"{file}: {error}")
            failed = max(failed, 2)
            continue
        status = estimate.verdict.status
        if status == "does_not_fit" or (options.strict and status != "fits"):
            print(f"{file}: {estimate}")
            failed = max(failed, 1)
    return failed


if __name__ == "__main__":
    sys.exit(main())
