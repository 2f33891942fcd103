"""The recipes of docs/python.md are run, in their order."""

import os
import re
import tempfile
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


class RecipesTest(unittest.TestCase):
    def test_every_recipe_of_the_page_runs(self):
        text = PAGE.read_text()
        titles = re.findall(r"^## (\d+)\. (.*)$", text, re.M)
        self.assertEqual([int(number) for number, _ in titles], list(range(1, 11)))
        sections = re.split(r"^## ", text, flags=re.M)[1:11]
        names = {}
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for section in sections:
                    code = "\n".join(re.findall(r"^```python\n(.*?)^```", section, re.M | re.S))
                    with self.subTest(recipe=section.splitlines()[0]):
                        self.assertTrue(code)
                        exec(compile(code, f"docs/python.md, {section.splitlines()[0]}", "exec"), names)
            finally:
                os.chdir(before)


if __name__ == "__main__":
    unittest.main()
