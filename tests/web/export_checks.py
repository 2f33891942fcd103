"""What is taken along from the page: files that a browser really saves, read by something else than the page."""
import json
import pathlib
import time
import xml.etree.ElementTree

import png

SVG = "{http://www.w3.org/2000/svg}"


class ExportChecks:
    def saved(self, selector, name):
        """The bytes of the file that a click saves."""
        folder = pathlib.Path(self.home, "downloads")
        folder.mkdir(exist_ok=True)
        file = folder / name
        file.unlink(missing_ok=True)
        self.browser.command("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
        self.browser.click(selector)
        end = time.monotonic() + 20
        while not file.exists() or file.stat().st_size == 0:
            assert time.monotonic() < end, (name, [one.name for one in folder.iterdir()])
            time.sleep(0.05)
        return file.read_bytes()

    def check_exports(self):
        self.open()
        self.settled()
        self.charts_are_saved()
        saved = json.loads(self.saved("#export-json", "memfathom.json"))
        assert saved["totals"]["device_peak_bytes"] == self.peak()
        assert json.loads(self.text("#export-text")) == saved
        yaml = self.saved("#export-yaml", "job.yaml").decode()
        assert yaml == self.text("#export-text")
        self.said_by_the_program(yaml)
        # After an advice, other settings and a GPU of another size the exports follow.
        self.settle(lambda: self.browser.click("#advice [data-patch=combination]"))
        self.set_control("gpu_memory", 40)
        self.set_control("sharding", "ZeRO-2")
        self.said_by_the_program(self.saved("#export-yaml", "job.yaml").decode())
        self.browser.click("#export-link")
        link = self.browser.wait("document.getElementById('export-text').textContent.includes('#1') && document.getElementById('export-text').textContent")
        peak, command = self.peak(), self.command()
        self.open(link[link.index("#"):])
        assert self.peak() == peak
        assert self.command() == command

    def said_by_the_program(self, yaml):
        """The job file and the command line, given to the program, have the page's answer."""
        pathlib.Path(self.home, "exported.yaml").write_text(yaml)
        shown = (self.peak(), self.status())
        for answer in (self.native(["estimate", "exported.yaml"]), self.native(self.command()[1:])):
            assert (answer["totals"]["device_peak_bytes"], answer["verdict"]["status"]) == shown, (answer["totals"], shown)

    def charts_are_saved(self):
        names = self.browser.script("return [...document.querySelectorAll('[data-save$=\".svg\"]')].map((button) => button.dataset.save.slice(0, -4))")
        assert names[:2] == ["peak", "timeline"] and len(names) == 4, names
        for name in names:
            width, height = self.browser.script(
                "const box = document.querySelector(arguments[0]).closest('.save').previousElementSibling.querySelector('svg'); return [box.width.baseVal.value, box.height.baseVal.value]",
                f"[data-save='{name}.svg']")
            root = xml.etree.ElementTree.fromstring(self.saved(f"[data-save='{name}.svg']", f"memfathom-{name}.svg"))
            assert root.tag == f"{SVG}svg" and float(root.get("width")) == width, root.attrib
            texts = [text.text or "" for text in root.iter(f"{SVG}text")]
            titles = [title.text or "" for title in root.iter(f"{SVG}title")]
            assert not [one for one in root.iter() if one.get("class")], "a file has no style sheet of the page"
            if name == "peak":
                assert any("23.56 GiB" in text for text in texts), texts
                shown = self.browser.script("return [...document.querySelectorAll('#components tbody tr')].slice(0, -1).map((row) => row.children[0].textContent + ': ' + row.children[1].textContent)")
                assert sorted(titles) == sorted(shown), (titles, shown)
            else:
                assert any("GiB" in text for text in texts), texts
            pixels = png.decode(self.saved(f"[data-save='{name}.png']", f"memfathom-{name}.png"))
            assert pixels[:2] == (2 * width, 2 * height), (name, pixels[:2], width, height)
            most = max(pixels[2].values())
            assert len(pixels[2]) > 20 and most < 0.97 * sum(pixels[2].values()), (name, len(pixels[2]), most)
