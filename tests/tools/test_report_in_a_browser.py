"""The report as it is drawn: Chromium says what is cut off, what overlaps, and what it complains of."""

import base64
import shutil

import pytest

import lambda_objectives as lo

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDTHS = (1280, 375)

FAULTS = r"""
const faults = [], width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width)
  faults.push(`the page is ${document.documentElement.scrollWidth} wide on a screen of ${width}`);
const say = (element) => `<${element.tagName}> ${(element.id || element.textContent).trim().slice(0, 40)}`;
const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
  && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
const ink = (element) => { const range = document.createRange(); range.selectNodeContents(element);
  return range.getBoundingClientRect(); };
function apart(elements, rects, what) {
  for (let i = 0; i < rects.length; i++)
    for (let j = i + 1; j < rects.length; j++)
      if (overlap(rects[i], rects[j])) faults.push(`${what}: ${say(elements[i])} lies over ${say(elements[j])}`);
}
for (const element of document.querySelectorAll('body *')) {
  const rect = element.getBoundingClientRect();
  if (rect.left < -1 || rect.right > width + 1) faults.push(`outside the page: ${say(element)}`);
  if (!element.closest('svg') && element.scrollWidth > element.clientWidth + 1 && element.clientWidth)
    faults.push(`cut off: ${say(element)}`);
}
for (const card of document.querySelectorAll('.card'))
  for (const element of card.querySelectorAll('*'))
    if (!element.closest('svg') && element.getBoundingClientRect().width
        && !within(element.getBoundingClientRect(), card.getBoundingClientRect()))
      faults.push(`outside its frame: ${say(element)}`);
for (const table of document.querySelectorAll('table')) {
  const cells = [...table.querySelectorAll('th, td')].filter((cell) => cell.textContent.trim());
  apart(cells, cells.map(ink), 'a table');
}
for (const svg of document.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('g[id^="text_"]')];
  if (!texts.length) faults.push('a picture without a text');
  for (const text of texts)
    if (!within(text.getBoundingClientRect(), svg.getBoundingClientRect()))
      faults.push(`outside its picture: ${say(text)}`);
  apart(texts, texts.map((text) => text.getBoundingClientRect()), svg.getAttribute('aria-label'));
}
return faults;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=service.Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def faults(browser, tmp_path):
    """What is wrong with a page on a screen of some width, a screenshot of which is left in the temporary folder."""

    def of(path, width, scheme="light"):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get_log("browser")
        browser.get(path.as_uri())
        found = browser.execute_script(FAULTS)
        height = browser.execute_script("return document.documentElement.scrollHeight")
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen | {"height": height})
        picture = base64.b64decode(browser.get_screenshot_as_base64())
        (tmp_path / f"{path.stem}-{width}-{scheme}.png").write_bytes(picture)
        return found + [entry["message"] for entry in browser.get_log("browser")]

    return of


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bounded", [False, True], ids=["plain", "constrained"])
def test_nothing_is_cut_off_or_overlaps(bounded, width, reports, faults, tmp_path):
    path = reports(("lightgbm", bounded)) / "report.html"
    assert faults(path, width) == []
    assert faults(path, width, "dark") == []
    assert {picture.suffix for picture in tmp_path.iterdir()} == {".png"}


@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_and_many_of_them(width, faults, tmp_path):
    """Names without a blank in which a line could be broken, numbers of all sizes, more of everything than usual."""
    long = "a_name_without_any_blank_that_is_longer_than_a_phone_is_wide"
    curve = [0.1 * i for i in range(1, 9)]
    roles, models = ["train", "valid", "test"], ["baseline", "constrained"]
    own = {"ndcg@10": 0.123456, "dcg@100": 123.4567}
    facts = {
        "title": long,
        "headline": [long * 3],
        "best_round": 8,
        "metrics": {what: {role: dict.fromkeys(["label", long], own) for role in roles} for what in models},
        "curves": {f"ndcg@10 of label {i}": {role: curve for role in [*roles, "valid, baseline"]} for i in range(7)},
        "constraints": {
            name: {
                "what": f"cost/{long}", "at_most": 0.00001234, "asked": long,
                "returned": dict.fromkeys(roles, 123456.789), "baseline": dict.fromkeys(roles, 0.5),
                "margin": dict.fromkeys(roles, -0.12345), "met": False, "by_round": {"train": curve, "valid": curve},
            }
            for name in ("quality", long)
        },
        "multipliers": {name: curve for name in ("quality", "price", "freshness", "margin")},
        "data": {
            role: {
                "file": f"/folder/{long}/{long}.txt", "queries": 1234567, "rows": 12345678, "features": 700,
                "label_values": {"label": {"counts": {str(i): 10**i for i in range(8)}, "without_relevant": 1234567}},
            }
            for role in roles
        },
        "importance": {f"{long}_{i}": 10.0**-i for i in range(30)},
        "objective": long * 5,
        "parameters": {long: {long: long}, "booster": {"eta": 0.1}},
        "warnings": [long, "a warning of several words, " * 20],
    }  # fmt: skip
    lo.report.write(tmp_path / "long.html", facts)
    assert faults(tmp_path / "long.html", width) == []


BROKEN = {
    "wide": ("<p style='width:3000px'>wide</p>", "the page is"),
    "cut": (
        "<div style='width:9em;overflow:hidden;white-space:nowrap'>more than there is any room for</div>",
        "cut off",
    ),
    "over": ("<table><tr><td>one<td style='position:relative;left:-2em'>two</table>", "a table: <TD> one lies over"),
    "frame": ("<div class=card style='height:1em'><p style='margin-top:3em'>out</p></div>", "outside its frame"),
    "text": (
        "<svg width=90 height=50 aria-label=p><g id=text_1><rect width=9 height=9 /></g>"
        "<g id=text_2><rect x=5 width=9 height=9 /></g><g id=text_3><rect x=85 width=9 height=9 /></g></svg>",
        "p: <g> text_1 lies over <g> text_2",
    ),
    "script": ("<script>undefined.here</script>", "TypeError"),
    "missing": ("<img src=nowhere.png>", "ERR_FILE_NOT_FOUND"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_faults_are_found(what, faults, tmp_path):
    body, expected = BROKEN[what]
    path = tmp_path / "broken.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><title>t</title><body>{body}</body>")
    assert any(expected in fault for fault in faults(path, 1280))
    if what == "text":
        assert any("outside its picture: <g> text_3" in fault for fault in faults(path, 1280))
