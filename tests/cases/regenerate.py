"""`make cases`: write the golden files anew. Read the difference before you commit it."""

from tests.cases.story import folders, told


def main() -> None:
    """Write every golden file."""
    for folder in folders():
        for name, text in told(folder).items():
            (folder / name).write_text(text)


if __name__ == "__main__":
    main()
