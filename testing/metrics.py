"""Reads the metrics of a Temporal server."""

import re
import urllib.request
from collections import Counter

_REQUESTS = re.compile(r"^service_requests\{(.*)\} (\S+)$", re.MULTILINE)
_OPERATION = re.compile(r'operation="([^"]+)".*service_name="frontend"')


def published_calls(port: int) -> Counter[str]:
    """How often each operation of the frontend was called, by the server's latest metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        metrics: str = answer.read().decode()
    found: Counter[str] = Counter()
    for labels, count in _REQUESTS.findall(metrics):
        if operation := _OPERATION.search(labels):
            found[operation[1]] += int(float(count))
    return found
