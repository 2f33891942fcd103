#!/usr/bin/env python3
"""No type has two definitions: the linker would silently take one of them (One Definition Rule).

Finds classes, structs, unions and enumerations that are defined more than once under the same qualified name outside of
anonymous namespaces. Prints the places of each; exits 1 when there is one.

    check_definitions.py ROOT"""

import pathlib
import re
import sys

FOLDERS = ["api", "benchmarks", "cli", "core", "db", "estimator", "fitter", "include", "kernels", "profiler"]

# Two implementations of the same classes, of which a build of the CPU module has one (kernels/devices/cpu/CMakeLists.txt).
ALTERNATIVES = ["kernels/devices/cpu/libraries/", "kernels/devices/cpu/portable/"]

# What does not count as code: comments, strings (raw ones first) and characters, preprocessor lines with their continuations.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.S | re.M,
)
# What stands before an opening brace, since the last brace or semicolon.
NAMESPACE = re.compile(r"\bnamespace\b\s*([\w:]*)\s*$")
TYPE = re.compile(
    r"(?:^|[\s>])(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*"
    r"(?P<name>[A-Za-z_][\w:]*)\s*(?:final\s*)?(?::(?!:)[^()]*)?$",
    re.S,
)


def without_comments(text: str) -> str:
    """The code alone; line numbers stay."""
    return NOT_CODE.sub(lambda found: "\n" * found[0].count("\n") + " ", text)


def definitions(text: str) -> list[tuple[str, int]]:
    """(qualified name, line) of each type defined at namespace scope, outside of anonymous namespaces."""
    found: list[tuple[str, int]] = []
    scopes: list[str | None] = []  # the name of a namespace; None: anonymous, or no namespace at all
    code = without_comments(text)
    start = 0
    for brace in re.finditer(r"[{};]", code):
        head = code[start : brace.start()]
        start = brace.end()
        if brace[0] == "}":
            if scopes:
                scopes.pop()
        elif brace[0] == "{":
            namespace = NAMESPACE.search(head)
            if namespace:
                scopes.append(namespace[1] or None)
                continue
            is_type = TYPE.search(head)
            if is_type and None not in scopes:
                line = code.count("\n", 0, brace.start() - len(head) + is_type.start("name")) + 1
                found.append(("::".join([*scopes, is_type["name"]]), line))
            scopes.append(None)
    return found


def is_alternative(places: list[str]) -> bool:
    """Whether these are one definition in each of the alternatives."""
    return len(places) == len(ALTERNATIVES) and all(sum(at.startswith(folder) for at in places) == 1 for folder in ALTERNATIVES)


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    places: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in {".h", ".cc", ".cu", ".cuh"}:
                continue
            for name, line in definitions(file.read_text(encoding="utf-8")):
                places.setdefault(name, []).append(f"{file.relative_to(root).as_posix()}:{line}")
    twice = {name: at for name, at in places.items() if len(at) > 1 and not is_alternative(at)}
    for name, at in sorted(twice.items()):
        print(f"{name} has {len(at)} definitions: {', '.join(at)}; rename one, or put it into an anonymous namespace")
    print(f"{len(places)} types, {len(twice)} defined more than once")
    return 1 if twice or not places else 0


if __name__ == "__main__":
    sys.exit(main())
