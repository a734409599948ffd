"""Opens pages in headless Chromium as readers do, and prints as JSON what is wrong with them.

    look.py [--axe AXE.js] [--shots DIR] PAGE.html...

Each page is opened in several ways: wide, in the dark, as narrow as a phone, with all that is folded open, without scripts, by
keyboard, on paper.
Chromium is spoken to by its debugging pipe; nothing else is needed, and no network.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What A4 leaves between margins of 1 cm, in CSS pixels.
PAPER = (718, 1046)
# Height of a picture, in pixels.
PIECE = 1500
WAYS = {
    "wide": {"width": 1280},
    "usual": {"width": 1000},
    "dark": {"width": 1280, "dark": True},
    "narrow": {"width": 420},
    "open": {"width": 1280, "unfold": True},
    "folded": {"width": 1280, "sections": False},
}

# Sections that are folded are looked at as well.
SECTIONS = """(() => { for (const part of document.querySelectorAll("details.section")) part.open = true; })()"""
# How much is read and scrolled where nothing is unfolded: words, and screens of 900 pixels.
LENGTH = """({
  words: document.body.innerText.split(/\\s+/).filter(Boolean).length,
  screens: document.documentElement.scrollHeight / 900,
})"""
UNFOLD = """(() => { for (const part of document.querySelectorAll("details")) part.open = true; })()"""

ALL = """(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (let y = 0; y < document.documentElement.scrollHeight; y += 600) { scrollTo(0, y); await frame(); await frame(); }
  scrollTo(0, 0);
  await frame();
})()"""

# What is wider than its place: the page itself, and boxes that would have to be scrolled.
CUT = """(() => {
  const found = [], page = document.documentElement;
  const shown = (e) => e.getClientRects().length > 0;
  if (page.scrollWidth > page.clientWidth) {
    let widest = null;
    for (const e of document.body.querySelectorAll("*"))
      if (shown(e) && !e.closest(".scroll, nav") && (!widest || e.getBoundingClientRect().right > widest.getBoundingClientRect().right)) widest = e;
    found.push(`the page: ${page.scrollWidth} of ${page.clientWidth}: ${widest && widest.outerHTML.slice(0, 120)}`);
  }
  // A wide box may be scrolled in its own place. On a narrow page that is so of figures alone: rows of tables are cards.
  const narrow = page.clientWidth <= 640;
  const may = (box) => box.classList.contains("wide") && !(narrow && box.querySelector("table")) && getComputedStyle(box).overflowX === "auto";
  for (const box of document.querySelectorAll(".scroll"))
    if (shown(box) && !may(box) && box.scrollWidth > box.clientWidth + 1)
      found.push(`${box.scrollWidth} of ${box.clientWidth}: ${box.textContent.trim().replace(/\\s+/g, " ").slice(0, 90)}`);
  return found;
})()"""

# The same on paper, where nothing can be scrolled or opened, and figures that are cut or not shown.
ON_PAPER = """(() => {
  const found = [];
  dispatchEvent(new Event("beforeprint"));
  for (const part of document.querySelectorAll("details.section:not([open]), details.row:not([open]), details.folded:not([open])"))
    found.push(`folded: ${part.textContent.trim().slice(0, 60)}`);
  for (const e of document.querySelectorAll("table, figure svg")) {
    if (e.closest("details:not([open])")) continue;
    const box = e.getBoundingClientRect();
    if (box.width > 0 && box.right > %d + 1) found.push(`${e.tagName} to ${Math.round(box.right)}: ${e.textContent.trim().replace(/\\s+/g, " ").slice(0, 90)}`);
  }
  for (const figure of document.querySelectorAll("figure.plot")) {
    if (figure.closest("details:not([open])")) continue;
    const box = figure.querySelector("svg").getBoundingClientRect();
    if (box.width < 100 || box.height < 50) found.push(`no figure: ${figure.textContent.trim().slice(0, 60)}`);
    if (box.height > %d) found.push(`higher than a page: ${figure.textContent.trim().slice(0, 60)}`);
    if (figure.querySelector("canvas") && figure.querySelector("canvas").getClientRects().length) found.push("a canvas on paper");
  }
  return found;
})()""" % PAPER

# What keys do: how many places Tab reaches in a figure, and what they change.
LIVE = """(() => {
  const live = document.querySelector(".live");
  if (!live) return null;
  return {
    at: live.querySelector(".at").textContent,
    pressed: [...live.querySelectorAll("button[aria-pressed]")].map((b) => b.getAttribute("aria-pressed")),
    values: [...live.querySelectorAll(".value")].map((v) => v.textContent),
    range: live.dataset.range,
    focus: document.activeElement && (document.activeElement.className || document.activeElement.tagName),
  };
})()"""


# Each figure by itself: what its last place says, whether it zooms, and whether a line can be switched off.
EACH = """(async () => {
  const said = [], frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  for (const figure of document.querySelectorAll("figure.has-live")) {
    const live = figure.querySelector(".live"), place = live.querySelector(".live-plot");
    const key = (key) => place.dispatchEvent(new KeyboardEvent("keydown", {key}));
    const values = () => [...live.querySelectorAll("button.line")].map((line) => [line.querySelector(".name").textContent, line.querySelector(".value").textContent]);
    key("End");
    const own = {title: figure.querySelector("figcaption").textContent, at: live.querySelector(".at").textContent, values: values(), all: live.dataset.range};
    key("+");
    await frame();
    own.zoomed = live.dataset.range;
    key("0");
    await frame();
    own.reset = live.dataset.range;
    const line = live.querySelector("button.line");
    line.click();
    own.off = line.getAttribute("aria-pressed");
    line.click();
    said.push(own);
  }
  return said;
})()"""


# Without scripts: how wide each figure is that is not folded away, and how many answer to keys.
STILL = """(() => {
  const figures = [...document.querySelectorAll("figure.plot")].filter((figure) => !figure.closest("details:not([open])"));
  return {
    widths: figures.map((figure) => { const svg = figure.querySelector(".still svg"); return svg ? svg.getBoundingClientRect().width : 0; }),
    live: document.querySelectorAll(".live").length,
  };
})()"""


class Browser:
    def __init__(self, program, profile):
        down, self.out = os.pipe()
        self.into, up = os.pipe()
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
                   "--font-render-hinting=none", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'ulimit -v unlimited 2>/dev/null; exec "$@" 3<&{down} 4>&{up}', "look", *command],
            pass_fds=(down, up), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down), os.close(up)
        self.rest, self.number, self.events = b"", 0, []

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.into, 1 << 20)
            if not more:
                raise SystemExit("Chromium ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **params):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": params}
        if session:
            asked["sessionId"] = session
        message = json.dumps(asked).encode() + b"\0"
        while message:
            message = message[os.write(self.out, message):]
        while True:
            said = self.read()
            if said.get("id") == asked["id"]:
                if "error" in said:
                    raise SystemExit(f"{method}: {said['error']}")
                return said["result"]
            self.events.append(said)

    def wait(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.read())

    def end(self):
        self.ask("Browser.close")
        self.process.wait(20)


class Page:
    def __init__(self, browser, path, width, dark=False, script=True, media="", unfold=False, sections=True):
        self.browser, self.uri = browser, path if isinstance(path, str) else path.resolve().as_uri()
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.ask(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        if not script:
            self.ask("Emulation.setScriptExecutionDisabled", value=True)
        browser.events.clear()
        self.ask("Page.navigate", url=self.uri)
        browser.wait("Page.loadEventFired")
        if unfold:
            self.run(UNFOLD)
        elif sections and script and not media:
            self.run(SECTIONS)
        if script:
            # What is drawn when somebody comes near.
            self.run(ALL)

    def ask(self, method, **params):
        return self.browser.ask(method, self.session, **params)

    def run(self, script):
        said = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in said:
            raise SystemExit(f"{script[:60]}: {said['exceptionDetails']}")
        return said["result"].get("value")

    def key(self, key, code=None):
        named = {"key": key, "code": code or key, "windowsVirtualKeyCode": {"Tab": 9, "Enter": 13, " ": 32, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37}.get(key, 0)}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.ask("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **named)

    def wrong(self):
        """What the console says, and what was asked of a network."""
        errors, requests = [], []
        for event in self.browser.events:
            method, said = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                errors.append(said["exceptionDetails"].get("exception", {}).get("description") or said["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
                errors.append(" ".join(str(arg.get("value")) for arg in said["args"]))
            elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                errors.append(said["entry"]["text"])
            elif method == "Network.requestWillBeSent" and said["request"]["url"] not in (self.uri, "about:blank"):
                requests.append(said["request"]["url"])
            elif method == "Page.javascriptDialogOpening":
                errors.append(f"a dialog: {said['message']}")
        return {"errors": errors, "requests": requests}

    def shot(self, path):
        """In pieces that can be looked at."""
        width, height = self.run("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        for n, top in enumerate(range(0, height, PIECE)):
            piece = {"x": 0, "y": top, "width": width, "height": min(PIECE, height - top), "scale": 1}
            shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=piece)
            path.with_stem(f"{path.stem}-{n + 1}").write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.browser.ask("Target.closeTarget", targetId=self.target)


def violations(page, axe):
    page.run(axe + "; 0")
    found = page.run("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => "
                     "v.id + ': ' + v.nodes.length + ': ' + v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160)).join(' | ')))")
    return found


def by_keyboard(page):
    """Tab to the first figure, read it by arrows, zoom in and out, switch its first line off and on."""
    if page.run(LIVE) is None:
        return None
    reached = False
    for _ in range(200):
        page.key("Tab")
        if page.run("document.activeElement.classList.contains('live-plot')"):
            reached = True
            break
    before = page.run(LIVE)
    page.key("ArrowRight")
    page.key("ArrowRight")
    moved = page.run(LIVE)
    page.key("+")
    zoomed = page.run(LIVE)
    page.key("0")
    reset = page.run(LIVE)
    page.run("document.querySelector('.live button[aria-pressed]').focus()")
    page.key("Enter")
    off = page.run(LIVE)
    page.key("Enter")
    on = page.run(LIVE)
    box = page.run("(() => { const p = document.querySelector('.live .u-over'); p.scrollIntoView({block: 'center'}); const b = p.getBoundingClientRect(); return [b.x + b.width * 0.4, b.y + b.height / 2]; })()")
    page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    hovered = page.run(LIVE)
    return {"reached": reached, "before": before, "moved": moved, "zoomed": zoomed, "reset": reset, "off": off, "on": on, "hovered": hovered}


def look(browser, path, axe, shots):
    said = {}
    for name, way in WAYS.items():
        page = Page(browser, path, **way)
        said[name] = {"cut": page.run(CUT)}
        if name == "folded":
            said[name]["length"] = page.run(LENGTH)
        if shots:
            page.shot(shots / f"{path.stem}-{name}.png")
        if axe:
            said[name]["axe"] = violations(page, axe)
        if name == "wide":
            said["keyboard"] = by_keyboard(page)
            said["figures"] = page.run(EACH)
            said["hostile"] = page.run("typeof window.hostile")
        said[name].update(page.wrong())
        page.close()
    page = Page(browser, path, width=1280, script=False)
    if shots:
        page.shot(shots / f"{path.stem}-still.png")
    said["still"] = {**page.run(STILL), **page.wrong()}
    page.close()
    page = Page(browser, path, width=PAPER[0], media="print")
    said["paper"] = {"cut": page.run(ON_PAPER)}
    if shots:
        page.shot(shots / f"{path.stem}-paper.png")
    page.ask("Emulation.setEmulatedMedia", media="", features=[])
    pdf = base64.b64decode(page.ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, marginTop=0.4, marginBottom=0.4,
                                    marginLeft=0.4, marginRight=0.4, printBackground=True)["data"])
    said["paper"]["pages"] = len(re.findall(rb"/Type\s*/Page\b", pdf))
    if shots:
        (shots / f"{path.stem}.pdf").write_bytes(pdf)
    said["paper"].update(page.wrong())
    page.close()
    return said


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--program", default="chromium")
    asked.add_argument("--axe", type=pathlib.Path)
    asked.add_argument("--shots", type=pathlib.Path)
    asked.add_argument("pages", nargs="+", type=pathlib.Path)
    asked = asked.parse_args()
    axe = asked.axe.read_text() if asked.axe else None
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(asked.program, profile)
        try:
            said = {path.stem: look(browser, path, axe, asked.shots) for path in asked.pages}
        finally:
            browser.process.poll() is None and browser.end()
    json.dump(said, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
