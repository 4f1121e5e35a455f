"""`make cases`: write the golden files anew. Read the difference before you commit it."""

from tests.cases.story import folders, told
from tests.executing.calls import golden_files


def main() -> None:
    """Write every golden file."""
    for folder in folders():
        for name, text in told(folder).items():
            (folder / name).write_text(text)
    for path, text in golden_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
