"""The report page in a real browser: headless Chromium, the page opened from disk, driven by clicks and keys."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from report_project import REDUCED, Project, run_result
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from fedbench.report.page import build as page
from fedbench.study.cells import matching
from fedbench.study.schema import Config

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="no Chromium here; Debian's packages chromium and chromium-driver have it",
)
CELL = "localscgdam/CIFAR10/p4_imratio0.1/"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
DESK, PHONE = (1280, 900), (390, 844)


class Reader:
    """A browser with the page open, and short ways to use it."""

    def __init__(self, driver: webdriver.Chrome, path: Path) -> None:
        self.driver, self.path = driver, path

    def open(self, size: tuple[int, int], scheme: str = "light") -> None:
        """Load the page afresh in a window of that size."""
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        self.driver.get("about:blank")
        self.driver.get(self.path.as_uri())

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def only(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def click(self, css: str) -> None:
        """Bring an element into view and click it, as a user does: what covers it gets the click."""
        element = self.only(css)
        self.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", element)
        element.click()

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str) -> None:
        WebDriverWait(self.driver, 20).until(lambda _: self.run(f"return Boolean({script})"))

    def shown(self) -> list[str]:
        """The cells of the rows that the list shows, in order."""
        return self.run(
            "return [...document.querySelectorAll('#all tbody tr:not([hidden]) th a')]"
            ".map(a => decodeURIComponent(a.hash.slice(1)))"
        )

    def column(self, title: str) -> list[str]:
        return self.run(
            "const heads = [...document.querySelectorAll('#all thead th')].map(h => h.textContent.trim());"
            "return [...document.querySelectorAll('#all tbody tr:not([hidden])')]"
            ".map(r => r.cells[heads.indexOf(arguments[0])].textContent.trim())",
            title,
        )

    def complaints(self) -> list[str]:
        """What stands on the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


def _page(config: Config) -> Path:
    project = Project(Path.cwd())
    Path("config/config.yaml").write_text("scale: reduced\n")
    project.fill("localscgdam", "table1", config)
    cells = project.cells("localscgdam", None, config)
    for method, values in (("LocalSCGDAM", 0.914), ("CoDA", 0.5), ("LocalSGDAM", 0.0999)):
        (cell,) = matching(cells, CELL + method)
        project.finish(cell, [values] * 3)
    (failed,), (diverged,) = matching(cells, CELL + "LocalSGDM"), matching(cells, CELL + "LocalSGDM_RL")
    failed.path.unlink()
    log = Path("logs/train/reduced") / f"{failed.name}.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: no such file\n")
    bad = {"status": "diverged", "reason": "x became infinite"}
    project.write(diverged, [{**run_result(r.seed, r.key, {}), **bad} for r in diverged.runs])
    return page.save_page(config).absolute()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A browser, and the page of a project with good, missing, failed and diverged cells."""
    config = REDUCED
    with chdir(tmp_path_factory.mktemp("page")):
        path = _page(config)
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        yield Reader(driver, path)
    finally:
        driver.quit()


@pytest.fixture
def desk(browser: Reader) -> Iterator[Reader]:
    """The page on a wide screen; the console stays empty whatever a test does."""
    browser.open(DESK)
    yield browser
    assert browser.complaints() == []


def test_one_click_on_a_number_shows_its_curve_and_configuration(desk: Reader) -> None:
    desk.click(f".paper-table a[href='#reduced/{CELL}CoDA']")
    desk.until("document.getElementById('dialog').open")
    inside = desk.only("#dialog-body .cell:not([hidden])")
    assert inside.is_displayed() and inside.get_attribute("id") == f"reduced/{CELL}CoDA"
    assert desk.run("return document.querySelector('#dialog-body img').naturalWidth") > 200
    assert "batch_size" in inside.find_element(By.CSS_SELECTOR, ".configuration").text
    assert inside.find_element(By.CSS_SELECTOR, ".command").text == f"fedbench run {CELL}CoDA --scale reduced"

    desk.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    desk.until("!document.getElementById('dialog').open")
    focused = desk.driver.switch_to.active_element
    assert (focused.get_attribute("href") or "").endswith(f"#reduced/{CELL}CoDA"), "back where one was"
    assert desk.run("return location.hash") == ""


def test_the_keyboard_is_enough(desk: Reader) -> None:
    link = desk.only(f".paper-table a[href='#reduced/{CELL}LocalSCGDAM']")
    desk.run("arguments[0].focus()", link)
    link.send_keys(Keys.ENTER)
    desk.until("document.getElementById('dialog').open")
    assert desk.run("return document.activeElement.id") == "close"
    opened, following = (f"reduced/{cell}LocalSCGDAM" for cell in (CELL, CELL.replace("/p4_", "/p8_")))
    for key, anchor in ((Keys.ARROW_RIGHT, following), (Keys.ARROW_LEFT, opened)):
        desk.driver.switch_to.active_element.send_keys(key)
        desk.until(f"document.querySelector('#dialog-body .cell:not([hidden])').id === {json.dumps(anchor)}")
    names = desk.run(
        "return [...document.querySelectorAll('button, input, a[href]')]"
        ".filter(e => !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)"
    )
    assert names == [], "every control has a name"


def test_an_address_opens_its_cell_and_back_closes_it(desk: Reader) -> None:
    desk.driver.get(f"{desk.path.as_uri()}#overview")
    desk.driver.get(f"{desk.path.as_uri()}#reduced/{CELL}LocalSGDM")
    desk.until("document.getElementById('dialog').open")
    assert "error: no such file" in desk.only("#dialog-body .cell:not([hidden]) pre").text
    desk.driver.back()
    desk.until("!document.getElementById('dialog').open")


def test_search_and_verdicts_filter(desk: Reader) -> None:
    every = len(desk.shown())
    desk.only("#search").send_keys("coda  P = 8")
    result = desk.shown()
    assert 0 < len(result) < every and all("/p8_" in cell and cell.endswith("/CoDA") for cell in result)
    assert desk.only("#shown").text == f"{len(result)} of {every} numbers"
    desk.only("#search").clear()
    desk.only("#search").send_keys("nothing like this")
    assert desk.shown() == []
    desk.click(".card[data-states='diverged']")
    assert desk.shown() == [f"reduced/{CELL}LocalSGDM_RL"], "a headline leads to what it counts"
    assert desk.only("#once").is_selected()
    desk.click("#once")
    desk.click(".chips [data-state=diverged]")
    desk.click(".chips [data-state=failed]")
    assert desk.shown() == [f"reduced/{CELL}LocalSGDM"]
    desk.click(".chips [data-state=failed]")
    assert len(desk.shown()) == every


def test_sorting_is_by_number_and_what_is_missing_comes_last(desk: Reader) -> None:
    desk.only("#search").send_keys("CIFAR10 p = 4")
    desk.click("#all thead th:nth-child(6) button")
    assert desk.column("Ours") == ["0.100", "0.500", "0.914", "", ""]
    assert desk.only("#all thead th:nth-child(6)").get_attribute("aria-sort") == "ascending"
    desk.click("#all thead th:nth-child(6) button")
    assert desk.column("Ours") == ["0.914", "0.500", "0.100", "", ""]
    desk.click("#all thead th:nth-child(9) button")
    assert [text[0] for text in desk.column("Δ") if text] == ["−", "−", "0"], "a negative difference is less"
    desk.only("#search").clear()
    desk.only("#search").send_keys("CoDA")
    desk.click("#all thead th:nth-child(4) button")
    periods = [text.split(" · ")[0] for text in desk.column("Setting")]
    assert periods == sorted(periods, key=lambda text: int(text.removeprefix("p = "))), "16 after 8"
    assert len(desk.run("return document.querySelectorAll('#all [aria-sort]')")) == 1


@pytest.mark.parametrize("size", [PHONE, (320, 640), DESK], ids=["phone", "small phone", "desk"])
def test_the_page_is_never_wider_than_the_screen(browser: Reader, size: tuple[int, int]) -> None:
    browser.open(size)
    wide = "return document.documentElement.scrollWidth > innerWidth"
    parts = [part.rect for part in browser.all("main > section") if part.is_displayed()]
    browser.click(f".paper-table a[href='#reduced/{CELL}LocalSGDM_RL']")
    browser.until("document.getElementById('dialog').open")
    parts.append(browser.only("#dialog").rect)
    assert all(part["x"] >= 0 and part["x"] + part["width"] <= size[0] for part in parts)
    assert not browser.run(wide) and browser.complaints() == []
    assert not browser.run(
        "const d = document.getElementById('dialog'); return d.scrollWidth > d.clientWidth"
    )


def test_wide_tables_fit_a_desk_and_verdicts_are_seen_on_a_phone_without_scrolling(browser: Reader) -> None:
    browser.open(DESK)
    box = "const box = document.querySelector(arguments[0]).closest('.wide');"
    for table in ("#all", ".overview", ".claims"):
        assert browser.run(f"{box} return box.scrollWidth <= box.clientWidth", table), table
    browser.open(PHONE)
    for tags in ("#all .tag", ".claims .tag"):
        outside = browser.run(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect())"
            ".filter(box => box.left < 0 || box.right > innerWidth || !box.width).length",
            tags,
        )
        assert browser.all(tags) and outside == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Reader, scheme: str) -> None:
    """WCAG AA: a contrast of 4.5 for every verdict, card, note and link that is shown."""
    browser.open(DESK, scheme)
    ratios = browser.run("""
        const channels = (c) => c.match(/[\\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
            .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
        const ground = (e) => {
            for (; e; e = e.parentElement) {
                const c = channels(getComputedStyle(e).backgroundColor);
                if (c.length < 4 || c[3] === 1) return c;
            }
            return [255, 255, 255];
        };
        return [...document.querySelectorAll('.tag, .card, .note, .delta, main a, nav a, summary, small, .zero')]
            .filter(e => e.checkVisibility())
            .map(e => {
                const [a, b] = [light(channels(getComputedStyle(e).color)), light(ground(e))];
                return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.className, e.textContent.trim()];
            });
    """)
    assert len(ratios) > 200
    assert [entry for entry in ratios if entry[0] < 4.5] == []


def test_the_packed_page_of_the_site_is_the_page(browser: Reader) -> None:
    page = Path(shutil.copy(browser.path, browser.path.with_name("packed.html")))
    subprocess.run([sys.executable, Path(__file__).parents[3] / "docs/pack.py", page], check=True)
    assert page.stat().st_size < browser.path.stat().st_size / 3
    browser.driver.get(f"{page.as_uri()}#reduced/{CELL}CoDA")
    browser.until("document.getElementById('dialog')?.open")
    assert "CoDA" in browser.only("#dialog-body .cell:not([hidden]) h4").text
    browser.open(DESK)


def test_it_can_be_read_without_scripts(browser: Reader) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(DESK)
        section = browser.driver.find_element(By.ID, f"reduced/{CELL}CoDA")
        assert section.is_displayed() and browser.only(".group img").is_displayed()
        assert not browser.only(".filter").is_displayed(), "no dead controls"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
