#!/usr/bin/env python3
"""Reads how binaries were linked: check_binary.py [--hardened] FILE...

Each must be position independent, with full RELRO, a stack that is not executable, no text relocations and no writable and executable
segment; a shared library exports nothing but memfathom_* functions. With --hardened (packages) also: calls of __stack_chk_fail and of
fortified functions and, on x86-64, marks of control-flow protection on the program.
"""
import pathlib
import re
import subprocess
import sys


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def problems(path, hardened):
    header = output("readelf", "-hW", path)
    segments = output("readelf", "-lW", path)
    dynamic = output("readelf", "-dW", path)
    symbols = output("nm", "-D", path)
    if "Type:                              DYN" not in header:
        yield "is not position independent"
    if "GNU_RELRO" not in segments:
        yield "has no RELRO segment"
    if not re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic):
        yield "resolves symbols lazily: RELRO is partial"
    if "TEXTREL" in dynamic:
        yield "has text relocations"
    for line in segments.splitlines():
        if line.split()[:1] == ["GNU_STACK"] and "E" in line.split()[6]:
            yield "has an executable stack"
        if line.split()[:1] == ["LOAD"] and "RWE" in line.replace(" ", ""):
            yield "has a segment that is writable and executable"
    if ".so" in pathlib.Path(path).name:
        for line in output("nm", "-D", "--defined-only", path).splitlines():
            name = line.split()[-1].split("@")[0]
            if not name.startswith("memfathom_") and not name.startswith("MEMFATHOM"):
                yield f"exports {name}"
    if not hardened:
        return
    if ".so" in pathlib.Path(path).name:  # the program itself is one call
        if "__stack_chk_fail" not in symbols:
            yield "has no stack protector"
        if not re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", "")):
            yield "calls no fortified function"
    if "X86-64" in header and not re.search(r"IBT.*SHSTK", output("readelf", "-nW", path)) and ".so" not in pathlib.Path(path).name:
        yield "has no control-flow protection"


def main():
    words = sys.argv[1:]
    hardened = "--hardened" in words
    files = [word for word in words if word != "--hardened"]
    if not files:
        sys.exit(__doc__)
    found = [f"{path} {problem}" for path in files for problem in problems(path, hardened)]
    print("\n".join(found) or f"{len(files)} binaries are as they should be")
    sys.exit(1 if found else 0)


main()
