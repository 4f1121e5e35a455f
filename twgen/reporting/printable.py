"""Text that a person can read safely, wherever it came from."""


def printable(text: str) -> str:
    """The text with every character that moves the cursor, turns or hides others, or ends a line escaped."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
