"""What Python's own readers need for a snapshot and a folder of specs: `read_files.py SNAPSHOT FOLDER`."""

import json
import sys
from pathlib import Path

import yaml

with Path(sys.argv[1]).open() as snapshot:
    json.load(snapshot)
for path in sorted(Path(sys.argv[2]).iterdir()):
    with path.open() as file:
        list(yaml.load_all(file, yaml.CSafeLoader))
