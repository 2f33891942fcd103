"""A browser driven through chromedriver's HTTP interface (W3C WebDriver): what the tests of the page need of it, and no more."""
import base64
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, width=1280, height=1000, arguments=()):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}", "--silent"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en-US", f"--window-size={width},{height}", *arguments]}
        capabilities = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}
        for _ in range(100):
            try:
                self.session = self.call("POST", "/session", {"capabilities": capabilities})["sessionId"]
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        self.call("POST", self.path("timeouts"), {"script": 120000, "pageLoad": 120000})

    def path(self, rest):
        return f"/session/{self.session}/{rest}"

    def call(self, method, path, body=None):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    def open(self, url):
        self.call("POST", self.path("url"), {"url": url})

    def script(self, code, *arguments):
        return self.call("POST", self.path("execute/sync"), {"script": code, "args": list(arguments)})

    def script_async(self, code, *arguments):
        """`code` calls its last argument with the result."""
        return self.call("POST", self.path("execute/async"), {"script": code, "args": list(arguments)})

    def find(self, selector):
        return self.call("POST", self.path("element"), {"using": "css selector", "value": selector})

    def click(self, selector):
        self.call("POST", self.path(f"element/{self.find(selector)[ELEMENT]}/click"))

    def type(self, selector, text):
        self.call("POST", self.path(f"element/{self.find(selector)[ELEMENT]}/value"), {"text": text})

    def wait(self, condition, *arguments, seconds=60):
        """Until `return condition` holds in the page; returns its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.script(f"return {condition};", *arguments)
            if value:
                return value
            time.sleep(0.03)
        raise AssertionError(f"{condition} did not come true within {seconds} s")

    def command(self, name, parameters):
        """A command of Chrome's DevTools."""
        return self.call("POST", self.path("goog/cdp/execute"), {"cmd": name, "params": parameters})

    def keys(self, text):
        """Keys pressed one after the other, whatever has the focus."""
        strokes = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.call("POST", self.path("actions"), {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def resize(self, width, height):
        # Headless windows have a least width; the device metrics have none.
        self.command("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def prefer(self, scheme):
        self.command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def screenshot(self, path, full=True):
        parameters = {"format": "png", "captureBeyondViewport": full}
        if full:
            width, height = self.script("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
            parameters["clip"] = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self.command("Page.captureScreenshot", parameters)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def log(self, kind):
        return self.call("POST", self.path("se/log"), {"type": kind})

    def close(self):
        try:
            self.call("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait()
