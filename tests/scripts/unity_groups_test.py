#!/usr/bin/env python3
"""Sources whose own names meet are not compiled as one file: unity_groups_test.py SCRIPT"""

import pathlib
import subprocess
import sys
import tempfile

SOURCES = {
    "function.cc": "int mean(int value) { return value; }",
    "same_function.cc": "double mean(double value) {\n  return value;\n}",
    "type.cc": "struct Plan {\n  int mean = 0;\n};",  # a member is nobody else's name
    "same_type.cc": "class Plan;",
    "alias.cc": "namespace fs = std::filesystem;\nusing ::testing::Not;\nusing namespace literals;",
    "same_alias.cc": "namespace fs = std::filesystem;\nusing ::testing::Not;\nusing namespace literals;\nTEST(A, B) {}",
    "other_alias.cc": "namespace fs = other;\nTEST(C, D) {}",
    "own_for_using.cc": "int Not(int value) { return -value; }",
}


def groups(script: str, folder: str, most: int) -> list[set[str]]:
    for name, text in SOURCES.items():
        pathlib.Path(folder, name).write_text(f"namespace {{\n\n{text}\n\n}}  // namespace\n")
    targets = pathlib.Path(folder, "targets.txt")
    targets.write_text(" ".join(["target", *(f"{folder}/{name}" for name in SOURCES)]) + "\n")
    lines = subprocess.run([sys.executable, script, str(most), targets], check=True, text=True, stdout=subprocess.PIPE).stdout
    words = [line.split() for line in lines.splitlines()]
    assert [word[:2] for word in words] == [["target", f"target_{n}"] for n in range(1, len(words) + 1)], lines
    return [{pathlib.Path(source).name for source in word[2:]} for word in words]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = groups(sys.argv[1], folder, 8)
        assert found == [{"function.cc", "type.cc", "alias.cc", "same_alias.cc"},
                         {"same_function.cc", "same_type.cc", "other_alias.cc", "own_for_using.cc"}], found
        assert [len(group) for group in groups(sys.argv[1], folder, 2)] == [2, 2, 2, 2]
    return 0


if __name__ == "__main__":
    sys.exit(main())
