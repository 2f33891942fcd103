"""Runs the commands of a page: blocks ```python file=NAME are written to files, blocks ```sh are run, in order.

    page_test.py PAGE.md        # needs MEMFATHOM_PROGRAM
"""
import os
import re
import subprocess
import sys
import tempfile


def main(page):
    program = os.path.abspath(os.environ["MEMFATHOM_PROGRAM"])
    blocks = re.findall(r"^```(sh|python file=(\S+))\n(.*?)^```$", open(page, encoding="utf-8").read(), re.MULTILINE | re.DOTALL)
    commands = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([os.path.dirname(program), os.path.dirname(sys.executable), os.environ["PATH"]])
        environment = os.environ | {"PATH": path, "MEMFATHOM_DB": os.path.join(folder, "db"), "VIRTUAL_ENV": os.path.dirname(os.path.dirname(sys.executable))}
        for kind, name, text in blocks:
            if kind != "sh":
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
                continue
            done = subprocess.run(["sh", "-e"], input=text, cwd=folder, env=environment, capture_output=True, text=True)
            commands += 1
            print(f"$ {text.strip()}\n{done.stdout[:400]}", flush=True)
            if done.returncode not in (0, 1) or not done.stdout:
                print(done.stderr[-2000:])
                return 1
    print(f"{commands} commands ran")
    return int(commands == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
