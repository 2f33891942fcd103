"""What scripts/cuda-budgets reads in ptxas's reports and in a library, with planted kernels that are over a budget.

    python3 cuda_budgets_test.py SCRIPT
"""
import importlib.machinery
import importlib.util
import pathlib
import struct
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)


def load():
    loader = importlib.machinery.SourceFileLoader("cuda_budgets", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cuda_budgets", loader))
    loader.exec_module(module)
    return module


budgets = load()

# Of nvcc 13.0 -Xptxas -v, two kernels.
REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5firstPf' for 'sm_80'
ptxas info    : Function properties for _Z5firstPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 64 bytes smem, 1000 bytes cmem[0]
ptxas info    : Compiling entry function '_Z6secondPf' for 'sm_80'
ptxas info    : Function properties for _Z6secondPf
    920 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 255 registers, 1000 bytes cmem[0]
"""


def fat_binary(*images):
    """A library with these images: (kind, architecture), 1 is PTX and 2 machine code."""
    entries = b""
    for kind, architecture in images:
        entries += struct.pack("<HHIQIIHHI", kind, 0x101, 64, 16, 0, 0, 0, 0, architecture).ljust(64, b"\0") + b"x" * 16
    return b"\x7fELF something" + struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries + b"more"


class BudgetsTest(unittest.TestCase):
    def test_reads_registers_stack_and_spills_of_every_kernel(self):
        self.assertEqual(budgets.kernels_in(REPORT), [("_Z5firstPf", 40, 0, 0), ("_Z6secondPf", 255, 920, 40)])

    def test_a_stack_a_spill_and_too_many_registers_are_complaints(self):
        self.assertEqual(list(budgets.complaints("k", 255, 0, 0)), [])
        self.assertEqual(len(list(budgets.complaints("k", 257, 8, 4))), 3)

    def test_a_known_stack_is_allowed_up_to_its_size(self):
        budgets.LOCAL["known"] = (16, 8)
        self.assertEqual(list(budgets.complaints("known<float>", 40, 16, 8)), [])
        self.assertEqual(len(list(budgets.complaints("known<float>", 40, 24, 0))), 1)
        self.assertEqual(len(list(budgets.complaints("known<float>", 40, 0, 16))), 1)
        del budgets.LOCAL["known"]

    def test_a_module_needs_code_of_every_architecture_and_ptx_of_the_newest(self):
        with tempfile.NamedTemporaryFile() as file:
            path = pathlib.Path(file.name)
            path.write_bytes(fat_binary((2, 80), (2, 90), (1, 90)))
            self.assertEqual(budgets.check_module(path, ["80", "90"]), [])
            self.assertEqual(len(budgets.check_module(path, ["75", "80", "90"])), 1)
            path.write_bytes(fat_binary((2, 80), (2, 90), (1, 80)))
            self.assertEqual(len(budgets.check_module(path, ["80", "90"])), 1)


unittest.main()
