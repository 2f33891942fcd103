"""Runs the package of the probe from the command line's arguments: `python -c BOOT NAME TEXT NAME TEXT ...`.

Nothing is installed or written to disk, and nothing of the current directory is imported in its place."""
import sys

sys.path[:] = [path for path in sys.path if path]  # before anything else: a json.py or torch.py of the cwd is not ours

import importlib.abc
import importlib.util

PACKAGE = "pytorch_probe"


class Texts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules of the package from their texts."""

    def __init__(self, texts):
        self.texts = texts

    def find_spec(self, name, path, target=None):
        package, _, module = name.partition(".")
        if package != PACKAGE or (module or "__init__") + ".py" not in self.texts:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=not module)

    def exec_module(self, module):
        file = (module.__name__.partition(".")[2] or "__init__") + ".py"
        exec(compile(self.texts[file], "<%s/%s>" % (PACKAGE, file), "exec"), module.__dict__)


sys.meta_path.insert(0, Texts(dict(zip(sys.argv[1::2], sys.argv[2::2]))))

from pytorch_probe.main import main

main()
