"""What servers of tests are started with."""

import os
import subprocess
import sys

import pytest

from testing import processes
from testing.processes import free_ports

FEW = range(31_000, 31_020)


def test_port_is_given_once_also_while_nobody_listens_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = f"\0twgen-test-{os.getpid()}-"  # the same test of another clone would have taken them all
    monkeypatch.setattr(processes, "_PORTS", FEW)
    monkeypatch.setattr(processes, "_CLAIM", claim)
    given = free_ports(len(FEW))
    assert given
    program = (
        f"from testing import processes\nprocesses._PORTS, processes._CLAIM = {FEW!r}, {claim!r}\n"
        f"print(processes.free_ports({len(FEW)}))"
    )
    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(given) & set(free_ports(len(FEW)))
    assert not any(f"{port}" in elsewhere.stdout for port in given)
