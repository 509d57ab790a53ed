"""Steps that the browser tests share."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 30


class Reader:
    """A person reading a report in a browser."""

    def __init__(self, driver, folder: Path):
        self.driver = driver
        self.folder = folder

    def open(self, page: str, width: int = 1280, height: int = 800, **state: str) -> None:
        """Open a page afresh at a window size; `state` becomes the address's hash."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")
        hash_ = "#" + urlencode(state) if state else ""
        self.driver.get(f"file://{self.folder}/{page}{hash_}")

    def browse(self, **state: str) -> None:
        """Open the trajectory browser and wait until its list stands."""
        self.open("trajectories.html", **state)
        self.until(lambda: "problems" in self.count())
        if "problem" in state:
            self.until(lambda: self.find(".column"))

    def until(self, condition) -> None:
        """Wait for what a page does by itself."""
        WebDriverWait(self.driver, PATIENCE, poll_frequency=0.02).until(lambda _: condition())

    def find(self, selector: str) -> list:
        """All elements that match."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of all matches, read at one moment."""
        script = "return [...document.querySelectorAll(arguments[0])].map((n) => n.textContent)"
        return self.driver.execute_script(script, selector)

    def text(self, selector: str) -> str:
        """The text of the first match, hidden or not."""
        return self.texts(selector)[0]

    def count(self) -> str:
        """What the browser says of its list."""
        return self.text("#count")

    def press(self, *keys: str) -> None:
        """Type keys to whatever has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def click(self, selector: str, index: int = 0) -> None:
        """Click the match at `index`; a list that is drawn anew meanwhile is looked up again."""

        def clicked() -> bool:
            try:
                self.find(selector)[index].click()
            except (StaleElementReferenceException, IndexError):
                return False
            return True

        self.until(clicked)

    def choose(self, select: str, value: str) -> None:
        """Choose an option of a select."""
        self.click(f"#{select} option[value='{value}']")

    def hash(self) -> str:
        """The address after `#`."""
        return self.driver.execute_script("return location.hash.slice(1)")

    def requests(self) -> list[str]:
        """Addresses asked for since the last call."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Console messages since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]
