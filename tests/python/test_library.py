"""libmemfathom inside a Python process: it finds what was installed with it, not with Python."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from memfathom._library import find_library

SELFTEST = """
import sys
from memfathom._library import run_main
sys.exit(run_main(["selftest", "--device", sys.argv[1]]))
"""


class LibraryTest(unittest.TestCase):
    def said_of(self, device, module):
        """What the self-test says where the module of the library's prefix is no library at all."""
        with tempfile.TemporaryDirectory() as folder:
            prefix = Path(folder).resolve()
            library = prefix / "lib" / "libmemfathom.so.0"
            broken = prefix / "lib" / "memfathom" / module
            broken.parent.mkdir(parents=True)
            shutil.copy(find_library(), library)
            broken.write_text("not a library")
            environment = {name: value for name, value in os.environ.items() if not name.endswith("_MODULE")}
            environment["MEMFATHOM_LIBRARY"] = str(library)
            ran = subprocess.run(
                [sys.executable, "-c", SELFTEST, device], env=environment, capture_output=True, text=True
            )
            self.assertEqual(ran.returncode, 4, ran.stderr)
            self.assertIn(f"{broken}: ", ran.stderr)
            return ran.stderr

    def test_the_cpu_module_is_that_of_the_librarys_prefix(self):
        self.assertIn("cannot load the cpu device", self.said_of("cpu", "libmemfathom_cpu.so"))

    def test_the_cuda_module_is_that_of_the_librarys_prefix(self):
        self.assertIn("the CUDA module could not be opened", self.said_of("cuda:0", "libmemfathom_cuda.so"))


if __name__ == "__main__":
    unittest.main()
