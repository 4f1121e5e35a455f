"""Finds other programs that twgen runs."""

import os
from shutil import which


def program_on_path(name: str) -> str:
    """The full path of a program, or empty if it is not on PATH.

    Relative folders in PATH are skipped, because the working directory may be an untrusted repository.
    """
    folders = os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))
    return which(name, path=folders) or ""
