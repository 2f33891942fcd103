"""What a pull request changes in the memory of its configurations, as Markdown (action.yml).

python -m memfathom.pull_request --base COMMIT [--gpu NAME] FILE...

Each file is estimated as it is in the commit and as it is now. Exit code 1: a job that fitted does not fit any more.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional, Union

from . import Bytes, Error, Estimate
from ._jobs import Document
from ._session import default_session

Answer = Union[Estimate, str, None]


def _estimate(text: Optional[str], name: str, gpu: Optional[str]) -> Answer:
    if text is None:
        return None
    try:
        return default_session().estimate(Document(name, text), gpu=gpu)
    except Error as error:
        return str(error)


def _text_in(commit: str, path: str) -> Optional[str]:
    # "./" makes git read the path from this folder and not from the top of the repository.
    shown = subprocess.run(["git", "show", f"{commit}:./{path}"], capture_output=True, text=True, check=False)
    return shown.stdout if shown.returncode == 0 else None


def _cell(answer: Answer) -> str:
    if answer is None:
        return "-"
    if isinstance(answer, str):
        return "not estimated: " + answer.replace("|", "\\|").replace("\n", " ")
    return f"{answer.device_peak} ({answer.verdict.status.replace('_', ' ')})"


def _change(before: Answer, after: Answer) -> str:
    if not isinstance(before, Estimate) or not isinstance(after, Estimate):
        return ""
    grown = int(after.device_peak) - int(before.device_peak)
    return (
        "none"
        if grown == 0
        else f"{'+' if grown > 0 else '-'}{Bytes(abs(grown))} ({grown / int(before.device_peak):+.1%})"
    )


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="memfathom-pull-request", description="Estimates of changed configurations as Markdown."
    )
    parser.add_argument("--base", required=True, help="the commit to compare with")
    parser.add_argument("--gpu", help="the GPU, unless the file names its own")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args(arguments)
    print("### GPU memory\n\n| job | before | after | change |\n|---|---|---|---|")
    stopped_fitting, advice = False, []
    for file in options.files:
        path = Path(file)
        before = _estimate(_text_in(options.base, file), file, options.gpu)
        after = _estimate(path.read_text(encoding="utf-8") if path.is_file() else None, file, options.gpu)
        print(f"| `{file}` | {_cell(before)} | {_cell(after)} | {_change(before, after)} |")
        if isinstance(after, Estimate) and after.fits is False:
            stopped_fitting |= not isinstance(before, Estimate) or before.fits is not False
            if after.advice:
                advice.append(f"- `{file}`: {after.advice}")
    if advice:
        print("\n**Advice**\n\n" + "\n".join(advice))
    print("\nDevice peak by [memfathom](https://pypi.org/project/memfathom/); nothing was run.")
    return 1 if stopped_fitting else 0


if __name__ == "__main__":
    sys.exit(main())
