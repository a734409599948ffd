"""Opens what a server of bundles has in headless Chromium, and prints as JSON what is wrong with it.

    served.py --axe AXE.js [--shots DIR] URL URL-OF-AN-EMPTY-ONE

The first URL has a run called `night` that goes on. When enough of it was seen, `end the run` is printed, and a line is
awaited on stdin.
"""

import argparse
import json
import pathlib
import sys
import tempfile
from urllib.parse import urljoin

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tactus-report/tests/report/browser"))
from look import CUT, WAYS, Browser, Page, violations  # noqa: E402

UNTIL = """new Promise((done, failed) => {
  const begun = Date.now();
  const look = () => { if (%s) done(true); else if (Date.now() - begun > 60000) failed(new Error("never: " + document.body.innerText.slice(0, 400))); else setTimeout(look, 50); };
  look();
})"""
STATE = """({
  cycles: document.querySelector('td[data-head="wake-ups"]') && document.querySelector('td[data-head="wake-ups"]').textContent,
  focus: document.activeElement.textContent,
  same: window.kept === document.querySelector("main h1"),
  line: document.getElementById("line").textContent,
})"""


def wrong(page, origin):
    """What the console says, and what was asked of anybody but the server."""
    said = page.wrong()
    return {"errors": said["errors"], "requests": [url for url in said["requests"] if not url.startswith(origin)]}


def look(browser, url, origin, name, axe, shots):
    said = {}
    for way, how in WAYS.items():
        page = Page(browser, url, **how)
        if "data-events" in page.run("document.getElementById('main') ? document.getElementById('main').outerHTML : ''"):
            page.run(UNTIL % "document.getElementById('line').textContent == 'followed as it goes on'")
        page.run(UNTIL % "!document.body.innerText.includes('is read ...')")
        said[way] = {"cut": page.run(CUT), "axe": violations(page, axe)}
        if shots:
            page.shot(shots / f"{name}-{way}.png")
        said[way].update(wrong(page, origin))
        page.close()
    page = Page(browser, url, width=1280, script=False)
    said["still"] = wrong(page, origin)
    page.close()
    return said


def live(browser, origin, shots):
    page = Page(browser, urljoin(origin, "/bundle/night/live"), width=1000)
    page.run(UNTIL % "document.getElementById('line').textContent == 'followed as it goes on'")
    page.run("window.kept = document.querySelector('main h1'); 0")
    for _ in range(5):
        page.key("Tab")
        if page.run("document.activeElement.textContent") == "Its report as it stands":
            break
    said = {"before": page.run(STATE)}
    page.run(UNTIL % f"document.querySelector('td[data-head=\"wake-ups\"]').textContent != {json.dumps(said['before']['cycles'])}")
    said["after"] = page.run(STATE)
    print("end the run", flush=True)
    sys.stdin.readline()
    page.run(UNTIL % "document.getElementById('line').textContent == 'the run has ended'")
    said["ended"] = page.run(STATE)
    said["cookie"] = page.run("document.cookie")
    if shots:
        page.shot(shots / "ended.png")
    browser.events = [event for event in browser.events if event.get("method") != "Page.loadEventFired"]
    page.key("Enter")
    browser.wait("Page.loadEventFired")
    said["opened"] = page.run("location.href")
    found = wrong(page, origin)
    said["outside"] = found["requests"] + found["errors"]
    page.close()
    return said


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--axe", type=pathlib.Path)
    asked.add_argument("--shots", type=pathlib.Path)
    asked.add_argument("url")
    asked.add_argument("empty")
    asked = asked.parse_args()
    axe, shots, origin = asked.axe.read_text(), asked.shots, urljoin(asked.url, "/")
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser("chromium", profile)
        try:
            refused = look(browser, origin, origin, "refused", axe, shots)
            # That nobody is let in without the token is an error to the console, and here what is wanted.
            for way in refused.values():
                way["errors"] = [error for error in way["errors"] if "401" not in error]
            # From here on its cookie is there.
            first = Page(browser, asked.url, width=1000)
            address = first.run("location.href")
            first.close()
            pages = {
                "refused": refused,
                "list": look(browser, origin, origin, "list", axe, shots),
                "empty": look(browser, asked.empty, asked.empty, "empty", axe, shots),
                "live": look(browser, urljoin(origin, "/bundle/night/live"), origin, "live", axe, shots),
                "report": look(browser, urljoin(origin, "/bundle/environments"), origin, "report", axe, shots),
                "proof": look(browser, urljoin(origin, "/bundle/prove"), origin, "proof", axe, shots),
            }
            said = {"pages": pages, "live": live(browser, origin, shots)}
            said["live"]["address"] = address
        finally:
            browser.process.poll() is None and browser.end()
    json.dump(said, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
