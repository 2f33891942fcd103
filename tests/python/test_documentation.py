"""The examples of docstrings are run."""

import doctest
import unittest

import memfathom
from memfathom import _bytes, _results, _session


def load_tests(loader, tests, pattern):
    for module in (memfathom, _bytes, _results, _session):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


if __name__ == "__main__":
    unittest.main()
