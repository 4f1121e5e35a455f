"""Controls a headless Chromium."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from testing.install import installed
from testing.recipes import CHROMEDRIVER

_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


class Appearance(NamedTuple):
    """The settings with which a page is displayed."""

    width: int
    """In pixels."""
    theme: str
    """`light` or `dark`."""


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    """Start the browser; it is closed at the end of the block."""
    options = webdriver.ChromeOptions()
    for option in _OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(installed(CHROMEDRIVER))))
    try:
        yield driver
    finally:
        driver.quit()


def set_appearance(driver: webdriver.Chrome, how: Appearance) -> None:
    """Display all pages with these settings from now on."""
    size = {"width": how.width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    theme = {"name": "prefers-color-scheme", "value": how.theme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
