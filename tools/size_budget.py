"""Keep files and functions small: the budget of CONTRIBUTING.md, measured."""

import ast
import statistics
import sys
from pathlib import Path

FILE_LIMIT = 300
FILE_MEDIAN = 100
FUNCTION_LIMIT = 60
FUNCTION_MEDIAN = 10


def main() -> int:
    """Print every file and function over its limit, and whether the medians hold."""
    files: list[int] = []
    functions: list[int] = []
    wrong: list[str] = []
    for path in sorted(Path("twgen").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        files.append(text.count("\n"))
        if files[-1] > FILE_LIMIT:
            wrong.append(f"{path}: {files[-1]} lines, at most {FILE_LIMIT}")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append((node.end_lineno or node.lineno) - node.lineno + 1)
                if functions[-1] > FUNCTION_LIMIT:
                    wrong.append(
                        f"{path}:{node.lineno}: {node.name}: {functions[-1]} lines, at most {FUNCTION_LIMIT}"
                    )
    for what, sizes, limit in (("files", files, FILE_MEDIAN), ("functions", functions, FUNCTION_MEDIAN)):
        if statistics.median(sizes) > limit:
            wrong.append(f"{what}: the median is {statistics.median(sizes)} lines, at most {limit}")
    print("\n".join(wrong) or f"{len(files)} files, {len(functions)} functions: within the size budget")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
