"""A story: documents, a snapshot and settings in a folder, and what twgen makes of them in golden files."""

from pathlib import Path

from click.testing import CliRunner

from twgen.cli.environment import environment
from twgen.cli.main import twgen
from twgen.yaml.reader import read_documents

STORIES = Path(__file__).parents[1] / "fixtures" / "cases"


def folders() -> list[Path]:
    """Every story."""
    return sorted(STORIES.iterdir())


def told(folder: Path) -> dict[str, str]:
    """What twgen says of a story now, by golden file: through the command line, warnings included."""
    (settings,) = read_documents((folder / "settings.yaml").read_text())
    common = [
        str(folder / "documents"),
        "--snapshot",
        str(folder / "snapshot.yaml"),
        "--now",
        settings["now"],
    ]
    common += ["--identity", settings["identity"]]
    if (operator := folder / "operator.yaml").exists():
        common += ["--operator-config", str(operator)]
    runner = CliRunner(env=settings.get("environment"))
    environment.cache_clear()
    commands = {
        "plan.txt": ["plan", *common],
        "plan.md": ["plan", *common, "-o", "markdown"],
        "plan.json": ["plan", *common, "-o", "json"],
        "manifests.yaml": ["render", *common],
    }
    texts = {name: _run(runner, arguments) for name, arguments in commands.items()}
    environment.cache_clear()
    return texts


def _run(runner: CliRunner, arguments: list[str]) -> str:
    ended = runner.invoke(twgen, arguments)
    if ended.exception:
        return f"{type(ended.exception).__name__}: {ended.exception}\n"
    return ended.stdout
