"""Where a script has its batch size and its length: an argument of its command line, the default of one, or a number in its text."""
from __future__ import annotations

import ast
import sys
import types
from typing import Optional

from .vary import NotVariable

ARGUMENTS = {
    "batch_size": ("--batch-size", "--batch_size", "--batch", "--bs", "-b", "--per_device_train_batch_size", "--per-device-train-batch-size", "--train_batch_size", "--train-batch-size",
                   "--micro_batch_size", "--micro-batch-size"),
    "sequence_length": ("--max-length", "--max_length", "--max-seq-length", "--max_seq_length", "--seq-len", "--seq_len", "--seq-length", "--seq_length", "--sequence-length", "--sequence_length",
                        "--block-size", "--block_size", "--context-length", "--context_length")}
NAMES = {key: tuple(dict.fromkeys(w.lstrip("-").replace("-", "_") for w in words if len(w) > 2)) for key, words in ARGUMENTS.items()}


class Place:
    """A size of the script: how to run it with another value."""

    def __init__(self, value: int, argument: str = "", name: str = ""):
        self.value, self.argument, self.name = value, argument, name

    def words(self, words: list[str], value: int) -> list[str]:
        """The script's words with the other value."""
        if not self.argument:
            return words
        changed = list(words)
        for i, word in enumerate(words):
            if word == self.argument and i + 1 < len(words):
                changed[i + 1] = str(value)
                return changed
            if word.startswith(self.argument + "="):
                changed[i] = f"{self.argument}={value}"
                return changed
        return [*changed, self.argument, str(value)]

    def assignments(self, value: int) -> list[str]:
        return [] if self.argument else [f"{self.name}={value}"]


def _given(words: list[str], argument: str) -> Optional[int]:
    for word, following in zip(words, [*words[1:], ""]):
        text = following if word == argument else word[len(argument) + 1 :] if word.startswith(argument + "=") else ""
        if text.isdecimal():
            return int(text)
    return None


def _number(node: Optional[ast.AST]) -> Optional[int]:
    is_count = isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)
    return node.value if is_count else None  # type: ignore[union-attr]


def _argument_defaults(tree: ast.AST) -> dict[str, int]:
    found = {}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
            continue
        default = next((_number(k.value) for k in call.keywords if k.arg == "default"), None)
        for word in call.args:
            if default is not None and isinstance(word, ast.Constant) and isinstance(word.value, str):
                found[word.value] = default
    return found


def _is_named(node: ast.AST, name: str) -> Optional[ast.AST]:
    """The node whose number `name` has here: of an assignment or of a keyword."""
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id.lower() == name.lower() for t in node.targets):
        return node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id.lower() == name.lower():
        return node.value
    if isinstance(node, ast.keyword) and (node.arg or "").lower() == name.lower():
        return node.value
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.lower() == name.lower():
                return value
    return None


def _numbers(tree: ast.AST, name: str) -> list[ast.Constant]:
    nodes = (_is_named(node, name) for node in ast.walk(tree))
    return [node for node in nodes if _number(node) is not None]  # type: ignore[misc]


def place_of(size: str, named: str, path: Optional[str], words: list[str]) -> Place:
    """`named` is the script's word for it, or empty: then the usual ones are looked for. Raises NotVariable."""
    tree = ast.parse(open(path, encoding="utf-8").read(), path) if path else ast.Module([], [])
    arguments = [named] if named.startswith("-") else [] if named else list(ARGUMENTS[size])
    for argument in arguments:
        value = _given(words, argument)
        if value is not None:
            return Place(value, argument)
    defaults = _argument_defaults(tree)
    for argument in arguments:
        if argument in defaults:
            return Place(defaults[argument], argument)
    for name in [] if named.startswith("-") else [named] if named else NAMES[size]:
        values = {node.value for node in _numbers(tree, name)}
        if len(values) == 1:
            return Place(int(values.pop()), name=name)
        if values:
            raise NotVariable(f"{name} has several values in the script ({', '.join(map(str, sorted(values)))}); name one with --vary {size}=NAME")
    spoken = size.replace("_", " ")
    raise NotVariable(f"{named} is neither an argument with a number nor a number in the script" if named else
                      f"the script has no argument and no number that is called like a {spoken}; name it with --vary {size}=--its-argument or {size}=ITS_NAME")


def run_with(path: str, assignments: list[str]) -> None:
    """Runs the script as its main module, with other numbers in its text."""
    wanted = dict(word.split("=", 1) for word in assignments)
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    for name, value in wanted.items():
        for node in _numbers(tree, name):
            node.value = int(value)
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    exec(compile(tree, path, "exec"), module.__dict__)
