#!/usr/bin/env python3
"""check_reports.py MEMFATHOM SCREENSHOTS: every kind of page that `memfathom report` writes, in a real browser at 390 and 1280 pixels, light
and dark: nothing is wider than the screen or cut, axe-core finds nothing, the console stays empty, and nothing is asked for."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page import Page  # noqa: E402

LORA = ["--model", "llama-2-7b", "--lora-rank", "8", "--batch-size", "4", "--sequence-length", "2048", "--dtype", "bf16", "--gpu", "rtx-4090"]
GPT2 = ["--model", "gpt2", "--batch-size", "4", "--sequence-length", "512"]
# What is wider than its place: regions that have to be scrolled, and texts of charts that leave their picture.
CUT = """return [...document.querySelectorAll('.scroll')].filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent.slice(0, 80))
  .concat([...document.querySelectorAll('svg text')].filter((e) => e.closest('svg').getClientRects().length).filter((e) => {
    const box = e.getBoundingClientRect(), picture = e.closest('svg').getBoundingClientRect();
    return box.left < picture.left - 1 || box.right > picture.right + 1; }).map((e) => e.textContent))
  .concat([...document.querySelectorAll('td, th')].filter((e) => e.getClientRects().length && e.clientWidth < 30 && e.textContent.length > 12).map((e) => e.textContent))"""


def reports(page):
    """The kinds of pages: {name: file}."""
    home = pathlib.Path(page.home)

    def run(*words):
        ran = subprocess.run([page.program, *words, "--quiet"], env=page.environment, cwd=home, capture_output=True, text=True, check=False)
        assert ran.returncode in (0, 1), (words, ran.stderr)

    for name, plant in (("a.json", []), ("b.json", ["--plant", "context=300MiB+workspace=1.5"])):
        run("bench", "run", "--device", "virtual:h100-80gb", "--filter", "conv", "--out", name, *plant)
    wanted = {"estimate-no": ["estimate", *LORA, "--frontier"], "estimate-fits": ["estimate", *GPT2, "--gpu", "rtx-4090"], "estimate-no-gpu": ["estimate", *GPT2],
              "calibration": ["calibration", "a100-40gb/pytorch"], "bench": ["bench", "a.json", "b.json"], "bench-same": ["bench", "a.json", "a.json", "--all"]}
    for name, words in wanted.items():
        run("report", *words, "--output", f"{name}.html")
    return {name: home / f"{name}.html" for name in wanted}


def main():
    program, pictures = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    if shutil.which("chromedriver") is None:
        print("left out: chromedriver is not installed (Debian: chromium-driver)")
        return 77
    pictures.mkdir(parents=True, exist_ok=True)
    page = Page("", program, pictures)
    problems = []
    try:
        for name, file in reports(page).items():
            for width, scheme in ((390, "light"), (390, "dark"), (1280, "light")):
                page.browser.resize(width, 900)
                page.browser.prefer(scheme)
                page.browser.open(file.as_uri())
                cut = page.browser.script(CUT)
                shown = page.browser.script("return document.documentElement.scrollWidth")
                if cut or shown > width:
                    problems.append((name, width, shown, cut[:5]))
                page.accessible()
                page.browser.screenshot(pictures / f"report-{name}-{width}-{scheme}.png")
        page.quiet()
    finally:
        page.close()
    assert problems == [], problems
    return 0


if __name__ == "__main__":
    sys.exit(main())
