"""Chromium without a window, driven through chromedriver's own protocol (WebDriver)."""
import base64
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


class Browser:
    """Close it: it is a process with a folder of its own. Nothing is fetched but what is asked for."""

    def __init__(self, width=1500, height=950, dark=False):
        self.folder = tempfile.mkdtemp(prefix="smelt_browser_")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.address = f"http://127.0.0.1:{line.rstrip('. ' + chr(10)).split()[-1]}/session"
                break
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
                 f"--user-data-dir={self.folder}", f"--window-size={width},{height}"] + ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] * dark
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": flags}, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = ""
        self.session = "/" + self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def _call(self, method, path, body=None):
        request = urllib.request.Request(self.address + self.session + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise RuntimeError(e.read().decode()[:1000]) from e

    def open(self, path):
        self._call("POST", "/url", {"url": pathlib.Path(path).resolve().as_uri()})

    def run(self, script, *args):
        """What the body of a function returns; its arguments are arguments[0], ..."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def wait(self, script, *args, limit=30):
        """The seconds until the script returns something true."""
        start = time.monotonic()
        while not self.run(script, *args):
            if time.monotonic() - start > limit:
                raise TimeoutError(script)
            time.sleep(0.02)
        return time.monotonic() - start

    def find(self, css):
        return next(iter(self._call("POST", "/element", {"using": "css selector", "value": css}).values()))

    def click(self, css):
        self._call("POST", f"/element/{self.find(css)}/click", {})

    def type(self, css, text):
        self._call("POST", f"/element/{self.find(css)}/value", {"text": text})

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def log(self):
        """What the console said since the last call."""
        return [f"{e['level']} {e['message']}" for e in self._call("POST", "/se/log", {"type": "browser"})]

    def close(self):
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
