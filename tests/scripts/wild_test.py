"""scripts/wild counts a small folder as a person would, and twice the same.

wild_test.py SCRIPT PROGRAM FOLDER"""

import subprocess
import sys

script, program, folder = sys.argv[1:]


def run(*more):
    return subprocess.run([sys.executable, script, folder, "--program", program, *more], capture_output=True, text=True, check=True).stdout


def row(text, title, name):
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(title))
    return next(line.split()[1:9] for line in lines[start:] if line.startswith(name))


first = run()
assert first == run(), "two runs differ"
# Found, no training, no model, no file, asked, answered, undecided, refused: the script's command, one with an unknown batch, one
# without a model; the evaluation is not looked at.
assert row(first, "command lines", "acme") == ["3", "0", "1", "0", "2", "1", "1", "0"], first
assert row(first, "files", "acme") == ["1", "0", "0", "0", "1", "1", "0", "0"], first
assert "per_device_train_batch_size" in first, first
assert "empty" not in first, first
refused = run("--lines", "--show", "refused")
assert "README.md:12:" in refused, refused
missing = subprocess.run([sys.executable, script, folder + "/nowhere"], capture_output=True, text=True, check=False)
assert missing.returncode == 1 and "is no folder" in missing.stderr, missing
