"""Make the pictures of the documentation from the output of the program: `make documentation`."""

import re
from base64 import b64decode
from collections.abc import Mapping
from hashlib import sha256
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from testing.browser import Appearance, browser, set_appearance
from testing.forking import forker
from testing.processes import ENVIRONMENT
from tests.terminal import twgen_on_terminal
from tools.resource_tree import resource_tree

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
EXAMPLE = ROOT / "examples" / "three-versions"
FLEET = Path(__file__).parent / "fleet"
THEMES = ("light", "dark")
SCREEN = ("plan . --snapshot before.yaml", "status . --snapshot snapshot.yaml --now 2026-11-21T05:28:00Z")
"""The commands in the picture of a terminal."""

_COLUMNS = 80
_WIDTH = 1120
"""The width of the dashboard's window in pixels."""
_TERMINALS = {
    "light": TerminalTheme(
        (246, 247, 249),
        (27, 31, 36),
        [(27, 31, 36), (163, 20, 28), (26, 107, 51), (122, 79, 0), (11, 84, 135), (110, 40, 130),
         (0, 105, 120), (89, 99, 110)],
    ),
    "dark": TerminalTheme(
        (20, 23, 27),
        (230, 233, 237),
        [(230, 233, 237), (255, 158, 163), (139, 224, 162), (242, 205, 117), (140, 200, 245), (220, 170, 240),
         (110, 220, 230), (163, 173, 184)],
    ),
}  # fmt: skip
# rich's own format would download a font
_TERMINAL = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
.{unique_id}-title {{ font: bold 18px system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
_DARK = {
    "#ffffff": "#14171b", "#1e293b": "#e6e9ed", "#64748b": "#a3adb8", "#cbd5e1": "#363d46",
    "#e2e8f0": "#262b32", "#e0f2fe": "#1e3a4c", "#bfe5d7": "#1f4a3c", "#e3b7d0": "#5c3550",
    "#8ccbf0": "#1d4f73", "#0060a0": "#1f6fb2", "#f0b93a": "#74550f", "#d6d3d1": "#45484d",
    "#a78bfa": "#5b45a8", "#0f766e": "#0f766e", "#9a5b2e": "#9a5b2e", "#475569": "#64748b",
    "#b3261e": "#ff9ea3",
}  # fmt: skip
"""The colours for a dark page, by the simulation's own colours."""


def write() -> None:
    """Write all pictures. Skip the dashboard if its page has not changed: browsers differ in pixels."""
    PICTURES.mkdir(exist_ok=True)
    for name, text in drawings().items():
        (PICTURES / name).write_text(text)
    page = dashboard()
    if fingerprint(page) != (PICTURES / "dashboard.sha256").read_text():
        _photograph(page)
        (PICTURES / "dashboard.sha256").write_text(fingerprint(page))


def drawings() -> Mapping[str, str]:
    """The SVG pictures, by file name."""
    simulated = output(EXAMPLE, "simulate", ".", "--snapshot", "snapshot.yaml", "-o", "svg")
    rendered = output(
        *(EXAMPLE, "render", ".", "--snapshot", "snapshot.yaml", "--operator-config", "operator.yaml"),
    )
    snapshot = (EXAMPLE / "snapshot.yaml").read_text()
    screen = "\n".join(f"$ twgen {command}\n{_on_terminal(command)}" for command in SCREEN)
    return {
        **{f"terminal-{theme}.svg": _terminal(screen, theme) for theme in THEMES},
        **{f"argocd-{theme}.svg": resource_tree(rendered, snapshot, theme) for theme in THEMES},
        "simulated-rollout-light.svg": simulated,
        "simulated-rollout-dark.svg": _darkened(simulated),
    }


def dashboard() -> str:
    """The dashboard's page with five workers. Each worker is at a different point in its rollout."""
    operator = str(EXAMPLE / "operator.yaml")
    return output(
        *(FLEET, "status", "workers.yaml", "--snapshot", "snapshot.yaml", "--operator-config", operator),
        *("-o", "html"),
    )


def fingerprint(page: str) -> str:
    """A hash of the page. It is stored with the picture, so that a change to the page is noticed."""
    return f"{sha256(page.encode()).hexdigest()}\n"


def _photograph(page: str) -> None:
    file = ROOT / "build" / "dashboard.html"
    file.parent.mkdir(exist_ok=True)
    file.write_text(page)
    with browser() as driver:
        for theme in THEMES:
            set_appearance(driver, Appearance(_WIDTH, theme))
            driver.get(file.as_uri())
            opened = "document.getElementById('shop/payments').open = true; document.activeElement.blur()"
            driver.execute_script(opened)
            # the browser needs a moment before it paints rows that have become visible
            painted = "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))"
            driver.execute_async_script(painted)
            height = driver.execute_script(
                "return document.querySelector('main').getBoundingClientRect().bottom"
            )
            clip = {"x": 0, "y": 0, "width": _WIDTH, "height": height + 12, "scale": 1.5}
            asked = {"format": "webp", "quality": 80, "clip": clip, "captureBeyondViewport": True}
            taken = driver.execute_cdp_cmd("Page.captureScreenshot", asked)
            (PICTURES / f"dashboard-{theme}.webp").write_bytes(b64decode(taken["data"]))


def output(folder: Path, *command: str) -> str:
    """The output of twgen in a folder."""
    ended = forker().run(command, folder, ENVIRONMENT)
    ended.check_returncode()
    return ended.stdout


def _on_terminal(command: str) -> str:
    _, shown = twgen_on_terminal(command.split(), EXAMPLE, _COLUMNS)
    return shown.replace("\r\n", "\n")


def _terminal(screen: str, theme: str) -> str:
    console = Console(file=StringIO(), record=True, width=_COLUMNS, force_terminal=True, highlight=False)
    console.print(Text.from_ansi(screen))
    return console.export_svg(
        title="twgen", theme=_TERMINALS[theme], code_format=_TERMINAL, unique_id=f"terminal-{theme}"
    )


def _darkened(picture: str) -> str:
    """The picture of a simulation in colours for a dark page. White words stay white."""
    kept = re.sub(r'(<text [^>]*fill=")#ffffff"', r'\1white"', picture)
    return re.sub(r"#[0-9a-f]{6}", lambda colour: _DARK[colour[0]], kept)
