"""Draw the objects of an Application like Argo CD's resource tree."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from twgen.yaml.reader import read_documents

_WIDTH, _HEIGHT, _GAP, _BETWEEN, _MARGIN = 330, 40, 10, 76, 16
_WAVE = "argocd.argoproj.io/sync-wave"
_SHORT = {
    "Application": "app", "ConfigMap": "cm", "Deployment": "deploy", "HorizontalPodAutoscaler": "hpa",
    "Job": "job", "Pod": "pod", "PodDisruptionBudget": "pdb", "Role": "role", "RoleBinding": "rb",
    "ServiceAccount": "sa",
}  # fmt: skip
_CAPTION = (
    "A drawing, not a screenshot: the objects that `twgen render` prints for examples/three-versions,",
    "placed as in Argo CD's resource tree. The health of the Deployments is from the example's snapshot.",
)
_HEALTHY, _PROGRESSING = "Healthy", "Progressing"


class _Colours(NamedTuple):
    paper: str
    node: str
    rule: str
    ink: str
    faint: str
    badge: str
    healthy: str
    progressing: str


_THEMES = {
    "light": _Colours("#eef1f4", "#ffffff", "#b4bfc9", "#1b1f24", "#59636e", "#495763", "#12805c", "#0b6fb8"),
    "dark": _Colours("#14171b", "#22272e", "#4a535e", "#e6e9ed", "#a3adb8", "#7d8a97", "#5fd0a0", "#6db9f2"),
}


class _Node(NamedTuple):
    kind: str
    name: str
    health: str
    """The health, or empty if Argo CD has none for this kind, or if the example does not show it."""
    wave: str
    below: "Sequence[_Node]" = ()


def resource_tree(rendered: str, snapshot: str, theme: str) -> str:
    """The drawing, as SVG.

    Each object that the Application manages is linked to it, even if the object has owner references. Pods
    are linked to their Deployment.
    """
    [document] = read_documents(snapshot)
    deployments = [item for worker in document["workers"] for item in worker["deployments"]]
    live = {item["metadata"]["name"]: item for item in deployments}
    nodes = [_node(item, live) for item in read_documents(rendered)]
    colours = _THEMES[theme]
    height = _MARGIN * 2 + len(nodes) * (_HEIGHT + _GAP) - _GAP + 44
    width = _MARGIN * 2 + 2 * _BETWEEN + 2 * _WIDTH + 190
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width} {height}",
            "width": str(width),
            "height": str(height),
            "font-family": "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif",
            "role": "img",
        },
    )
    SubElement(root, "title").text = "Resource tree of an Application"
    _rect(root, (0, 0), (width, height), colours.paper, rx="8")
    middle = _MARGIN + (len(nodes) * (_HEIGHT + _GAP) - _GAP - _HEIGHT) / 2
    first, second, third = _MARGIN, _MARGIN + 190 + _BETWEEN, _MARGIN + 190 + 2 * _BETWEEN + _WIDTH
    for index, node in enumerate(nodes):
        y = _MARGIN + index * (_HEIGHT + _GAP)
        _edge(root, (first + 190, middle), (second, y), colours)
        _draw(root, node, (second, y), _WIDTH, colours)
        for child in node.below:
            _edge(root, (second + _WIDTH, y), (third, y), colours)
            _draw(root, child, (third, y), 190, colours)
    _draw(root, _Node("Application", "payments", _PROGRESSING, ""), (first, middle), 190, colours)
    for index, line in enumerate(_CAPTION):
        _text(root, line, (_MARGIN, height - 32 + 18 * index), 12, colours.faint)
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def _node(item: Mapping[str, Any], live: Mapping[str, Any]) -> _Node:
    kind, metadata = item["kind"], item["metadata"]
    name, wave = metadata["name"], metadata.get("annotations", {}).get(_WAVE, "")
    if kind == "Job":
        return _Node(kind, name, _PROGRESSING, wave)  # the Job waits until the step's pause is over
    if kind != "Deployment":
        return _Node(kind, name, "", wave)
    status = live[name]["status"]
    available, wanted = status["availableReplicas"], live[name]["spec"]["replicas"]
    health = _HEALTHY if available == wanted else _PROGRESSING
    return _Node(kind, name, health, wave, (_Node("Pod", f"{available} of {wanted} available", health, ""),))


def _draw(root: Element, node: _Node, place: tuple[float, float], width: float, colours: _Colours) -> None:
    x, y = place
    _rect(root, place, (width, _HEIGHT), colours.node, stroke=colours.rule, rx="4")
    badge = {"cx": str(x + 22), "cy": str(y + 20), "r": "15", "fill": colours.badge}
    SubElement(root, "circle", badge)
    short = _SHORT[node.kind]
    _text(root, short, (x + 22, y + 23.5), 9, colours.node, **{"text-anchor": "middle"})
    room = int((width - 60) / 6.3)
    name = node.name if len(node.name) <= room else f"{node.name[: room - 1]}…"
    _text(root, name, (x + 44, y + 17), 12, colours.ink, **{"font-weight": "600"})
    after = x + 44
    if node.health:
        colour = colours.healthy if node.health == _HEALTHY else colours.progressing
        _text(root, f"{'♥' if node.health == _HEALTHY else '◔'} {node.health}", (after, y + 32), 10.5, colour)
        after += 86
    if node.kind not in {"Pod", "Application"}:
        _text(root, "✓ Synced", (after, y + 32), 10.5, colours.healthy)
        after += 62
    if node.wave:
        _text(root, f"wave {node.wave}", (after, y + 32), 10.5, colours.faint)


def _edge(root: Element, begin: tuple[float, float], end: tuple[float, float], colours: _Colours) -> None:
    (x1, y1), (x2, y2) = begin, end
    half = (x1 + x2) / 2
    y1, y2 = y1 + _HEIGHT / 2, y2 + _HEIGHT / 2
    drawn = {"d": f"M{x1:g} {y1:g} H{half:g} V{y2:g} H{x2:g}", "fill": "none", "stroke": colours.rule}
    SubElement(root, "path", {**drawn, "stroke-dasharray": "3 3"})


def _rect(
    root: Element, place: tuple[float, float], size: tuple[float, float], fill: str, **attributes: str
) -> None:
    sides = zip(("x", "y", "width", "height"), (*place, *size), strict=True)
    SubElement(root, "rect", {**{name: f"{side:g}" for name, side in sides}, "fill": fill, **attributes})


def _text(
    root: Element, words: str, place: tuple[float, float], size: float, fill: str, **attributes: str
) -> None:
    written = {"x": f"{place[0]:g}", "y": f"{place[1]:g}", "font-size": f"{size:g}", "fill": fill}
    SubElement(root, "text", {**written, **attributes}).text = words
