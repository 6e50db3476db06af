"""The page in a real browser: driven by mouse and by keyboard alone, and held against the rules of accessibility.

Needs the extra ``browser`` (Playwright), Chromium on the machine, and the built front end; skipped where one is absent.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from baggraph.report._pieces import bundle
from baggraph.report.html import report

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install '.[browser]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = """--headless --no-sandbox --disable-gpu --enable-unsafe-swiftshader --disable-quic --no-first-run
 --disable-background-networking --disable-component-update --disable-sync""".split()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.skipif(bundle() is None, reason="the front end is not built: make demo"),
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory, made):
    rng = np.random.default_rng(0)
    bags = made.bags(ids=[f"slide-{i:02d}" for i in range(40)], coords=rng.normal(size=(40, 2)))
    target = tmp_path_factory.mktemp("page") / "report.html"
    return report(
        made.scores(), target, bags=made.hide(bags), model=made.model(bags), truth=bags.y, commands=["baggraph demo"]
    )


@pytest.fixture
def visit(browser):
    """Open a page that may neither complain nor ask anything of any server."""
    opened, told, asked = [], [], []

    def call(path):
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        opened.append(page)
        page.on("console", lambda message: told.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
        return page

    yield call
    assert told == []
    assert [url for url in asked if not url.startswith(("data:", "file:"))] == []
    for page in opened:
        page.close()


@pytest.fixture
def page(visit, path):
    return visit(path)


def test_a_bag_is_found_and_told_of(page):
    page.fill("#search", "slide-07")
    panel = page.locator("#panel")
    assert panel.locator("h3").inner_text() == "slide-07"
    assert "with probability" in panel.inner_text()
    panel.get_by_role("button", name="slide-08").click()
    assert panel.locator("h3").inner_text() == "slide-08"
    assert page.locator("tr.chosen").count() == 1 or "slide-07" in page.locator("#bag-table").inner_text()


def test_a_click_on_a_point_tells_of_it_and_a_click_beside_none_leaves_it(page):
    page.fill("#search", "slide-07")
    page.wait_for_timeout(600)  # it moves to the middle, where it can be clicked
    page.fill("#search", "")
    drawing = page.locator("#explorer")
    box = drawing.bounding_box()
    drawing.click(position={"x": 8, "y": box["height"] - 8})
    assert "Choose a bag" in page.locator("#panel").inner_text()
    page.wait_for_timeout(600)  # two clicks at once would be one on a double, which zooms
    drawing.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    page.wait_for_selector("#panel h3")
    assert page.locator("#panel h3").inner_text() == "slide-07"


def test_views_without_a_script_are_there_and_notes_fold(page):
    assert page.locator("#map svg.chart").count() == 3
    assert page.locator("#trust svg.chart").count() == 3
    assert page.locator("#trust svg.chart .wrong, #trust svg.chart .right").count() >= 14


def test_on_paper_the_drawing_stands_still_and_everything_is_open(page):
    page.emulate_media(media="print")
    assert page.locator("#still svg").is_visible()
    assert not page.locator("#explorer").is_visible()
    assert not page.locator("header").is_visible()


def test_colours_edges_and_places_change(page):
    page.select_option("#colour-by", label="probability of 1")
    assert page.locator("#legend .strip").count() == 1
    page.select_option("#colour-by", label="label")
    assert page.locator("#legend .dot").count() == 2
    page.locator("#least-weight").fill("90")
    assert page.locator("#edges-shown").inner_text() == "13 of 40 edges"
    page.select_option("#view", "map")
    assert page.locator("#explorer canvas").count() > 0


def test_the_table_sorts_and_turns(page):
    page.get_by_role("button", name="probability of 1").click()
    cells = page.locator("#bag-table tbody tr td:nth-child(4)").all_inner_texts()
    assert cells == sorted(cells, key=float)
    page.get_by_role("button", name="Next").click()
    assert page.locator(".pager .quiet").inner_text() == "26 to 40 of 40"


def test_the_keyboard_alone_is_enough(page):
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "search":
            break
    page.keyboard.type("slide-1")
    page.keyboard.press("Enter")
    assert page.locator("#panel h3").inner_text() == "slide-10"
    page.focus("#explorer")
    before = page.locator("#explorer").screenshot()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    page.wait_for_timeout(300)
    assert page.locator("#explorer").screenshot() != before


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_hangs_over_and_both_grounds_are_readable(page, width):
    page.set_viewport_size({"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light


@pytest.fixture(scope="module")
def groups(tmp_path_factory, made):
    """A page of more bags than are drawn one by one."""
    bags = made.bags(20_500, ids=[f"slide-{i:05d}" for i in range(20_500)])
    target = tmp_path_factory.mktemp("groups") / "report.html"
    return report(None, target, bags=made.hide(bags), model=made.model(bags), truth=bags.y)


def test_groups_stand_for_very_many_bags_and_bags_are_found_in_them(visit, groups):
    page = visit(groups)
    assert groups.stat().st_size < 3_000_000
    assert "20,500 bags" in page.locator("#graph").inner_text()
    assert "edges between groups" in page.locator("#edges-shown").inner_text()
    page.fill("#search", "slide-20007")
    assert page.locator("#panel h3").inner_text().startswith("group ")
    assert "Bags (" in page.locator("#panel").inner_text()
    assert page.locator("#bag-table tbody tr").count() == 1
    page.select_option("#colour-by", label="bags")
    assert page.locator("#legend .strip").count() == 1


def test_ten_thousand_bags_are_painted_at_once_and_live_soon(visit, tmp_path, made):
    bags = made.bags(10_000)
    path = report(None, tmp_path / "large.html", bags=made.hide(bags), model=made.model(bags), truth=bags.y)
    assert path.stat().st_size < 3_000_000
    page = visit(path)
    page.wait_for_timeout(500)
    painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert page.evaluate(painted) < 3_000  # words come before the work on the graph; 0.3 s on a quiet machine
    page.fill("#search", "9999")
    assert page.locator("#panel h3").inner_text() == "9999"


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: cd frontend && npm ci")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_no_serious_fault(browser, path, theme, width):
    context = browser.new_context(bypass_csp=True, color_scheme=theme, viewport={"width": width, "height": 850})
    opened = context.new_page()
    opened.goto(path.as_uri())
    opened.wait_for_selector("html[data-ready=yes]")
    opened.fill("#search", "slide-07")
    opened.add_script_tag(path=AXE)
    found = opened.evaluate("axe.run()")
    grave = [
        (v["id"], [n["html"][:120] for n in v["nodes"]])
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    assert grave == []
    context.close()
