"""Check the limits of files and functions in CONTRIBUTING.md."""

import ast
import sys
from pathlib import Path

FILE_LIMIT = 450
FUNCTION_LIMIT = 60


def main() -> int:
    """Print each file and function that exceeds its limit."""
    files = functions = 0
    wrong: list[str] = []
    for path in sorted(Path("twgen").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        files += 1
        if (lines := text.count("\n")) > FILE_LIMIT:
            wrong.append(f"{path}: {lines} lines, at most {FILE_LIMIT}")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions += 1
                if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LIMIT:
                    wrong.append(
                        f"{path}:{node.lineno}: {node.name}: {lines} lines, at most {FUNCTION_LIMIT}"
                    )
    print("\n".join(wrong) or f"{files} files, {functions} functions: within the size budget")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
