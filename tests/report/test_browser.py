"""The report in a real browser, from a disk, with the network off."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from selenium.webdriver.common.keys import Keys

from tests import synthetic
from tests.report.browsing import Reader

VOTING = "Voting-IP-0.1M-Math/seed0"


@pytest.fixture
def reader(chromium, report) -> Reader:
    reader = Reader(chromium, report)
    reader.complaints()
    return reader


@pytest.fixture(scope="module")
def captured(config) -> str:
    return f"{synthetic.captured_cell(config).name}/seed0"


def calls_of(layout, run: str) -> pd.DataFrame:
    return pd.read_parquet(layout.root / "cells" / run / "trajectories.parquet")


def shown(reader) -> int:
    return int(re.match(r"(\d+) of", reader.count()).group(1))


PAGES = ["index.html", "claims.html", "tables.html", "figures.html", "cells.html",
         "cells/Voting-IP-0.1M-Math.seed0.html", "trajectories.html"]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_page_opens_from_disk_without_complaint_or_outside_request(reader, page):
    reader.requests()
    reader.open(page)
    assert reader.find("main h1")
    asked = [url for url in reader.requests() if url != "about:blank"]
    assert len(asked) >= 2 and all(url.startswith("file://") for url in asked)
    assert reader.complaints() == []


@pytest.mark.parametrize("page", PAGES)
def test_page_fits_a_phone(reader, page):
    reader.open(page, width=390, height=844)
    assert reader.driver.execute_script("return document.documentElement.scrollWidth") <= 390


def test_markup_in_an_output_is_shown_as_text_and_does_nothing(reader):
    reader.browse(scope=VOTING, problem="math-0000")
    outputs = reader.texts("pre.output")
    assert any(
        "<script>document.title = 'owned'</script> </script><img src=x" in o for o in outputs
    )
    assert reader.find("#detail script, #detail img") == []
    assert "owned" not in reader.driver.title
    assert reader.complaints() == []


def test_controls_that_reorder_text_are_written_out(reader):
    reader.browse(scope=VOTING, problem="math-0001")
    assert "\\u202eright to left\\u202c, עברית" in reader.text("#detail")


def test_inline_script_is_blocked(reader):
    reader.browse(scope=VOTING)
    reader.driver.execute_script(
        "const s = document.createElement('script'); s.textContent = 'document.title = \"owned\"';"
        "document.body.append(s)"
    )
    assert "owned" not in reader.driver.title
    assert any("Content Security Policy" in message for message in reader.complaints())


def test_wrong_filter_counts_problems_as_the_data_do(reader, layout):
    calls = calls_of(layout, VOTING)
    best = calls["checkpoint"].map(lambda names: "best" in names.split("+"))
    wrong = calls[best & ~calls["correct"]]["problem"].nunique()
    reader.browse(scope=VOTING, checkpoint="best")
    total = shown(reader)
    reader.click("#wrong")
    reader.until(lambda: shown(reader) != total)
    assert shown(reader) == wrong < total
    assert "wrong=1" in reader.hash()


def test_filters_apply_to_the_chosen_role_and_checkpoint(reader, layout, captured):
    calls = calls_of(layout, captured)
    named = calls["checkpoint"].map(lambda names: "terminal" in names.split("+"))
    of_role = named & (calls["role"] == "evaluator") & calls["role_correct"].eq(False)
    expected = calls[of_role]["problem"].nunique()
    reader.browse(scope=captured, role="evaluator", checkpoint="terminal", wrong="1")
    assert 0 < shown(reader) == expected


def test_captured_filter_finds_the_evaluator_that_writes_programs(reader, captured):
    reader.browse(scope=captured, role="evaluator", captured="1", checkpoint="terminal")
    assert shown(reader) > 0
    reader.press("j")
    reader.until(lambda: reader.find(".column"))
    marked = [text for text in reader.texts(".call > summary") if "captured" in text]
    assert marked and all("evaluator" in text for text in marked)
    reader.browse(scope=VOTING, captured="1")
    assert shown(reader) == 0


def test_link_restores_everything(reader, captured):
    state = {"scope": captured, "problem": "code-0003", "view": "policies", "role": "generator",
             "checkpoint": "terminal", "q": "code-000"}  # fmt: skip
    reader.browse(**state)
    for control in ("scope", "view", "role", "checkpoint", "q"):
        assert reader.find(f"#{control}")[0].get_property("value") == state[control]
    assert reader.text("#problem-title") == "code-0003"
    assert shown(reader) == 10
    assert len(reader.find(".row[aria-selected=true]")) == 1
    opened = reader.texts(".call[open] > summary")
    assert opened and all("generator" in text for text in opened)


def test_same_problem_side_by_side(reader):
    def titles():
        return reader.texts(".column h3")

    reader.browse(scope=VOTING, problem="math-0002")
    steps = [int(re.search(r"step (\d+)", title).group(1)) for title in titles()]
    assert steps[0] == 0 and steps == sorted(steps) and len(steps) >= 3
    reader.choose("view", "policies")
    expected = ["Voting-SP-0.1M-Math", "Voting-IP-0.1M-Math"]
    reader.until(lambda: titles() == expected)
    reader.choose("view", "base")
    expected = ["Voting-Base-0.1M-Math", "Voting-IP-0.1M-Math"]
    reader.until(lambda: titles() == expected)
    reader.choose("view", "single")
    expected = ["SA-RL-0.1M-Math", "Voting-IP-0.1M-Math"]
    reader.until(lambda: titles() == expected)


def test_all_cells_can_be_searched_at_once(reader, layout):
    reader.browse(scope="all", q="math-0003")
    found = len([p for p in (layout.root / "cells").iterdir() if p.name.endswith("-Math")])
    assert shown(reader) == found
    reader.press("j", "j")
    reader.until(lambda: reader.find(".column"))
    assert reader.text(".problem .quiet") in reader.text(".row[aria-selected=true]")


def test_keys_do_what_the_help_says(reader):
    reader.browse(scope=VOTING)
    reader.press("j", "j", "k")
    reader.until(lambda: reader.find("#problem-title"))
    reader.until(lambda: reader.text("#problem-title") == "math-0000")
    reader.press("v")
    assert reader.find("#view")[0].get_property("value") == "policies"
    reader.press("]")
    assert "checkpoint=" in reader.hash()
    reader.press("[", "w")
    assert reader.find("#wrong")[0].is_selected() and "checkpoint=" not in reader.hash()
    reader.press("w", "/", "0007")
    reader.until(lambda: shown(reader) == 1)
    reader.press(Keys.ESCAPE)
    assert reader.driver.switch_to.active_element.get_attribute("id") == "list"
    reader.press("?")
    assert reader.find("#help")[0].is_displayed()
    reader.press(Keys.ESCAPE)
    assert not reader.find("#help")[0].is_displayed()
    reader.press(Keys.ESCAPE)
    reader.until(lambda: "problem=" not in reader.hash())


def test_phone_shows_the_list_then_the_problem_and_back(reader):
    reader.open("trajectories.html", width=390, height=844, scope=VOTING)
    reader.until(lambda: reader.find(".row"))
    assert not reader.find("#detail")[0].is_displayed()
    reader.click(".row")
    reader.until(lambda: reader.find(".column"))
    assert not reader.find("#list")[0].is_displayed()
    assert reader.driver.execute_script("return document.documentElement.scrollWidth") <= 390
    reader.click(".back")
    reader.until(reader.find("#list")[0].is_displayed)


def test_back_button_returns_to_the_problem_before(reader):
    reader.browse(scope=VOTING)
    reader.click(".row")
    reader.until(lambda: reader.find("#problem-title"))
    reader.click(".row", 1)
    reader.until(lambda: reader.text("#problem-title") == "math-0001")
    reader.driver.back()
    reader.until(lambda: reader.text("#problem-title") == "math-0000")


def test_unknown_cell_in_a_link_is_named(reader):
    reader.open("trajectories.html", scope="../../etc/passwd")
    assert "There are no trajectories of" in reader.text("[role=alert]")
    assert reader.complaints() == []


def test_every_control_has_a_name(reader):
    reader.browse(scope=VOTING)
    reader.press("j")
    reader.until(lambda: reader.find(".column"))
    controls = reader.find("select, input, button, summary, [tabindex='0']")
    seen = [control for control in controls if control.is_displayed()]
    assert len(seen) > 15
    assert all(control.accessible_name.strip() for control in seen)


def test_dark_mode_follows_the_reader(reader):
    def ground() -> str:
        script = "return getComputedStyle(document.body).backgroundColor"
        return reader.driver.execute_script(script)

    def prefer(value: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": value}]
        reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    reader.open("index.html")
    prefer("light")
    light = ground()
    prefer("dark")
    assert ground() != light
    prefer("light")


def test_chart_reads_values_out_under_the_pointer(reader):
    reader.open("cells/Voting-IP-0.1M-Math.seed0.html")
    reader.driver.execute_script(
        "const svg = document.querySelector('figure.chart svg');"
        "const box = svg.getBoundingClientRect();"
        "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.right - 15, clientY: box.top}))"
    )
    assert re.match(r"step 40 · Training success rate 0\.\d+", reader.text(".readout"))
