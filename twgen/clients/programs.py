"""Other programs that twgen runs."""

import os
from shutil import which


def program_on_path(name: str) -> str:
    """The full path of a program; empty: it is not on PATH.

    Relative folders of PATH are skipped: the working folder may be a repository of somebody else.
    """
    folders = os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))
    return which(name, path=folders) or ""
