#!/usr/bin/env python3
"""Which sources of a target can be compiled as one file: unity_groups.py MOST FILE

The file has a line "TARGET SOURCE..." for each target; a line "TARGET GROUP SOURCE..." with at most MOST sources is printed
for each group. Two files whose anonymous namespaces have a name in common are kept apart, so that no name has to be unique
beyond its own file."""

import os
import pathlib
import re
import sys

BLOCK = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.DOTALL | re.MULTILINE)
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum(?: class)?) (\w+)")
ALIAS = re.compile(r"(?:using|namespace) (\w+) = |using (?:namespace )?[\w:]*?(\w+);")
OTHER = re.compile(r"[^=({\[;]*?(\w+)\s*[=({\[;]")
KEYWORDS = {"INSTANTIATE_TEST_SUITE_P", "TEST", "TEST_F", "TEST_P", "TYPED_TEST", "template"}
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)


def names_of(source: str) -> dict[str, str]:
    """What a file declares for itself, and where; of an alias the line, since the same one may stand in several files."""
    text = pathlib.Path(source).read_text()
    names = dict.fromkeys(MACRO.findall(text), source)
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if not line or not (line[0].isalpha() or line[0] == "_"):
                continue
            if found := ALIAS.match(line):
                names[found.group(1) or found.group(2)] = line
            elif found := TYPE.match(line) or OTHER.match(line):
                names[found.group(1)] = source
    return {name: where for name, where in names.items() if name not in KEYWORDS}


def groups_of(sources: list[str], most: int) -> list[list[str]]:
    """Each source joins the first group that has room and none of its names."""
    groups: list[tuple[list[str], dict[str, str]]] = []
    for source in sources:
        names = names_of(source)
        for members, taken in groups:
            if len(members) < most and all(taken.get(name, where) == where for name, where in names.items()):
                break
        else:
            members, taken = [], {}
            groups.append((members, taken))
        members.append(source)
        taken.update(names)
    return [members for members, _ in groups]


def main() -> int:
    most = int(sys.argv[1])
    for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
        target, *sources = line.split()
        sources = [os.path.normpath(source) for source in sources]
        for number, members in enumerate(groups_of(sources, most), start=1):
            print(target, f"{target}_{number}", *members)
    return 0


if __name__ == "__main__":
    sys.exit(main())
