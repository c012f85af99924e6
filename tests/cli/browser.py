# SPDX-License-Identifier: MIT
"""A real Chromium through ChromeDriver, by the WebDriver protocol, for report_page.py: no library is needed for that."""
import base64
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
        "ArrowDown": "\ue015", "PageUp": "\ue00e", "PageDown": "\ue00f", "Home": "\ue011", "End": "\ue010",
        "Shift": "\ue008", "Tab": "\ue004"}


def missing():
    """Why there is no browser here; None when there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="tidemark-chromium-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True)
        self.base = None
        self.opened = 0
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}"
                break
        if self.base is None:
            raise RuntimeError("chromedriver did not start")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update",
                     "--disable-sync", "--hide-scrollbars", f"--user-data-dir={self.profile}",
                     # A page that was left is gone, and none is made ready in advance: a quarter of the time of opening one.
                     "--renderer-process-limit=1", "--process-per-site",
                     "--disable-features=BackForwardCache,SpareRendererForSitePerProcess,RenderDocument,PaintHolding"]
        try:
            answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": arguments},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        except Exception:
            self.stop()
            raise
        self.session = f"/session/{answer['sessionId']}"

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as e:
            raise AssertionError(json.loads(e.read())["value"]["message"]) from e

    def do(self, method, path, body=None):
        return self.ask(method, self.session + path, body)

    def close(self):
        try:
            self.do("DELETE", "")
        finally:
            self.stop()

    def stop(self):
        self.driver.terminate()
        self.driver.wait(30)
        self.driver.stdout.close()
        shutil.rmtree(self.profile, True)

    # ---- pages ----

    def open(self, path, fragment=""):
        # a query of its own each time: another fragment of the same file would not load it anew
        self.opened += 1
        self.do("POST", "/url", {"url": f"{pathlib.Path(path).absolute().as_uri()}?{self.opened}{fragment}"})

    def js(self, script, *args):
        return self.do("POST", "/execute/sync", {"script": script, "args": list(args)})

    def js_async(self, script, *args):
        return self.do("POST", "/execute/async", {"script": script, "args": list(args)})

    def cdp(self, command, **params):
        return self.do("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def log(self, kind):
        return self.do("POST", "/se/log", {"type": kind})

    def requests(self):
        """Addresses that the page asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def settle(self):
        """Two frames: what was asked to be drawn is drawn."""
        self.js_async("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(true)));")

    def until(self, script, *args, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.js("return " + script, *args)
            if found:
                return found
            self.settle()
        raise AssertionError(f"it never came to that: {script}")

    # ---- hands ----

    def find(self, css):
        return self.do("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self.do("POST", f"/element/{self.find(css)}/click", {})
        self.settle()

    def type(self, css, text):
        element = self.find(css)
        self.do("POST", f"/element/{element}/value", {"text": text})
        self.settle()

    def choose(self, css, value):
        self.click(f"{css} option[value='{value}']")

    def keys(self, *keys, css="#live-plot"):
        """One after the other on an element; "Shift+ArrowLeft" holds the first."""
        self.js("document.querySelector(arguments[0]).focus()", css)
        for key in keys:
            actions = []
            parts = [key] if key in ("+", "-") else key.split("+")
            codes = [KEYS.get(part, part) for part in parts]
            actions += [{"type": "keyDown", "value": code} for code in codes]
            actions += [{"type": "keyUp", "value": code} for code in reversed(codes)]
            self.do("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})
        self.settle()

    def pointer(self, css, *steps):
        """("move", x, y), ("down",), ("up",): from the element's upper left corner."""
        self.js("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", css)
        box = self.js("const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.top]", css)
        actions = []
        for step in steps:
            if step[0] == "move":
                actions.append({"type": "pointerMove", "duration": 0, "x": round(box[0] + step[1]), "y": round(box[1] + step[2])})
            else:
                actions.append({"type": "pointerDown" if step[0] == "down" else "pointerUp", "button": 0})
        self.do("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})
        self.settle()

    def wheel(self, css, x, y, dy, dx=0):
        self.js("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", css)
        box = self.js("const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.top]", css)
        self.do("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(box[0] + x), "y": round(box[1] + y), "deltaX": dx, "deltaY": dy}]}]})
        self.settle()

    # ---- looks ----

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def media(self, kind="", dark=False):
        self.cdp("Emulation.setEmulatedMedia", media=kind,
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.settle()

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.do("GET", "/screenshot")))
