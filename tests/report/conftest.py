"""One synthetic study, its report and one browser, shared by all tests of the report."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from rolewise.analysis.claims import write_claims
from rolewise.analysis.collect import write_cells
from rolewise.config import Config
from rolewise.report.build import build_report
from rolewise.runs.layout import Layout
from tests import configs, synthetic

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def config(tmp_path_factory) -> Config:
    root = tmp_path_factory.mktemp("study")
    settings = {
        "grid.workflows": ["Eval-Opt", "Voting"],
        "evaluation.transfer_scales": [],
        "signatures.bootstrap": 40,
        "training.checkpoint_every": 10,
    }
    return configs.config(root, settings=settings)


@pytest.fixture(scope="session")
def layout(config) -> Layout:
    layout = synthetic.write_study(Path(config.results_dir), config)
    write_cells(config)
    write_claims(config)
    return layout


@pytest.fixture(scope="session")
def report(config, layout) -> Path:
    """The folder of a report over the whole synthetic study."""
    return build_report(config).parent


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser without network; a machine without one fails the tests rather than passing them."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.fail("the report is tested in Chromium: apt-get install -y chromium chromium-driver")
    options = Options()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    opened.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    opened.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    yield opened
    opened.quit()
