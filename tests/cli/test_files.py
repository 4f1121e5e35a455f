"""Files and folders as people have them: what cannot be read is a line, and nothing is printed."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import TWGEN, Ended, Run, write_operator

RENDER = ("render", "specs", "--snapshot", "snapshot.json")


def refused(ended: Ended, said: str, code: int = 2) -> None:
    assert ended.returncode == code, ended.stderr
    assert not ended.stdout or "kind: RenderFailed" in ended.stdout, "into a pipe"
    assert said in ended.stderr.splitlines()


def without_privileges(folder: Path, *arguments: str) -> Ended:
    """The program as somebody whom permissions bind: root passes over them."""
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*bound, TWGEN, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_dangling_link_is_said(run: Run, story: Path) -> None:
    (story / "specs" / "more").symlink_to("nowhere")
    refused(run(*RENDER), "specs/more is a link to a file that does not exist: fix or remove it")


def test_folder_of_one_dangling_link_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "pay.yaml").symlink_to("nowhere")
    ended = run("validate", str(tmp_path / "only"))
    said = "is a link to a file that does not exist: fix or remove it"
    assert ended.stdout == f"{tmp_path}/only/pay.yaml {said}\n"


def test_link_to_itself_is_said(run: Run, story: Path) -> None:
    (story / "specs" / "loop.yaml").symlink_to("loop.yaml")
    refused(run(*RENDER), "specs/loop.yaml is a link to a file that does not exist: fix or remove it")
    refused(
        run("render", "specs/loop.yaml"),
        "twgen: cannot read specs/loop.yaml: Too many levels of symbolic links",
    )


def test_link_that_cannot_be_followed_is_said(run: Run, story: Path) -> None:
    # a kernel thread has no working directory to follow a link to
    (story / "specs" / "kernel.yaml").symlink_to("/proc/2/exe")
    ended = run("render", "specs", "--snapshot", "snapshot.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "kernel.yaml is a link" in ended.stderr


def test_folder_that_links_to_itself_is_read_once(run: Run, story: Path) -> None:
    expected = run(*RENDER).stdout
    (story / "specs" / "again").symlink_to(".")
    (story / "specs" / "below").mkdir()
    (story / "specs" / "below" / "up").symlink_to("..")
    assert run(*RENDER).stdout == expected


def test_file_under_two_names_is_read_once(run: Run, story: Path) -> None:
    expected = run(*RENDER).stdout
    (story / "specs" / "a.json").symlink_to("connection.json")
    ended = run("render", "specs/connection.json", "./specs", "specs/../specs", "--snapshot", "snapshot.json")
    assert (ended.stdout, ended.returncode) == (expected, 0)


def test_files_of_a_mounted_config_map_are_read(run: Run, story: Path) -> None:
    expected = run(*RENDER).stdout
    (story / "specs").rename(story / "..2026")
    (story / "specs").mkdir()
    (story / "..2026").rename(story / "specs" / "..2026")
    (story / "specs" / "..data").symlink_to("..2026")
    for file in ("connection.json", "workerdeployment.json"):
        (story / "specs" / file).symlink_to(f"..data/{file}")
    assert run(*RENDER).stdout == expected


def test_folder_and_file_that_may_not_be_read_are_said_together(story: Path) -> None:
    (story / "specs" / "closed").mkdir(mode=0)
    (story / "specs" / "connection.json").chmod(0)
    ended = without_privileges(story, *RENDER)
    (story / "specs" / "closed").chmod(0o700)
    assert ended.returncode == 2
    assert "cannot read specs/closed: Permission denied" in ended.stderr
    assert "cannot read specs/connection.json: Permission denied" in ended.stderr


def test_folder_that_may_not_be_searched_is_said(story: Path) -> None:
    (story / "specs").chmod(0)
    ended = without_privileges(story, "render", "specs/connection.json")
    (story / "specs").chmod(0o700)
    refused(ended, "twgen: cannot read specs/connection.json: Permission denied")


def test_pipes_and_sockets_in_a_folder_are_said_and_not_waited_for(run: Run, story: Path) -> None:
    os.mkfifo(story / "specs" / "p.yaml")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(story / "specs" / "s.json"))
        ended = run(*RENDER)
    refused(ended, "specs/p.yaml is not a file or folder: remove it, or pass it as a separate PATH")
    refused(ended, "specs/s.json is not a file or folder: remove it, or pass it as a separate PATH")


def test_folder_with_the_name_of_a_file_is_a_folder(run: Run, story: Path) -> None:
    expected = run(*RENDER).stdout
    (story / "specs" / "x.yaml").mkdir()
    shutil.move(story / "specs" / "connection.json", story / "specs" / "x.yaml")
    assert run(*RENDER).stdout == expected


def test_folders_deeper_than_the_system_can_name_are_said(run: Run, story: Path) -> None:
    folder = os.open(story / "specs", os.O_RDONLY)
    for _ in range(2500):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    try:
        ended = run(*RENDER)
    finally:  # no later run of pytest could clear such a folder
        subprocess.run(["rm", "-r", story / "specs"], check=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "File name too long" in ended.stderr


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "twgen: '': no such file or folder"),
        ("x" * 5000, f"twgen: cannot read {'x' * 5000}: File name too long"),
        ("specs/connection.json/x", "twgen: specs/connection.json/x: no such file or folder"),
        ("a\x1b[31m\nb", "twgen: a\\x1b[31m\\nb: no such file or folder"),
        ("/proc/self/mem", "cannot read /proc/self/mem: Input/output error"),
        ("/dev/zero", "/dev/zero: more than 16777216 bytes: split the file"),
        ("/dev/null", "twgen: no document found in /dev/null: give the folder of your specs"),
    ],
)
@pytest.mark.usefixtures("story")
def test_path_that_holds_no_documents_is_said(run: Run, path: str, said: str) -> None:
    refused(run("render", path), said)


@pytest.mark.parametrize("command", ["render", "lock", "validate"])
def test_folder_that_is_gone_while_one_is_in_it_is_said(tmp_path: Path, command: str) -> None:
    gone = ("bash", "-c", f"mkdir gone && cd gone && rmdir ../gone && exec {TWGEN} {command}")
    ended = subprocess.run(gone, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    refused(ended, "twgen: cannot read .: No such file or directory")


def test_names_that_are_no_text_or_move_the_cursor_are_escaped(run: Run, story: Path) -> None:
    folder = os.fsencode(story / "specs")
    for name in (b"\xff.yaml", b"\x1b[2J\n\xe2\x80\xae.yaml"):
        with open(folder + b"/" + name, "w") as file:  # noqa: PTH123 - Path has no bytes
            file.write("a: [\n")
    ended = run(*RENDER)
    wrong = "2: a [ or { is not closed before this, or a value is missing"
    refused(ended, f"specs/\\udcff.yaml:{wrong}")
    refused(ended, f"specs/\\x1b[2J\\n\\u202e.yaml:{wrong}")
    validated = run("validate", "specs")
    assert validated.returncode == 1
    assert "specs/\\x1b[2J\\n\\u202e.yaml:2: a [ or {" in validated.stdout
    assert "\x1b" not in validated.stdout + validated.stderr + ended.stderr


def test_problem_in_a_file_whose_name_is_no_text_is_json_all_the_same(run: Run, story: Path) -> None:
    with open(os.fsencode(story / "specs") + b"/\xff.yaml", "w") as file:  # noqa: PTH123 - Path has no bytes
        file.write("apiVersion: temporal.io/v1alpha1\nkind: Connection\nspec: {}\n")
    ended = run("validate", "specs", "-o", "json")
    assert ended.returncode == 1
    assert '"specs/\\udcff.yaml"' in ended.stdout


def test_control_characters_of_a_document_are_escaped_in_messages(run: Run, story: Path) -> None:
    worker = story / "specs" / "workerdeployment.json"
    worker.write_text(worker.read_text().replace('"conn"', '"\\u001b[31m\\u202e"'))
    for command in (("validate", "specs"), RENDER):
        ended = run(*command)
        assert "\x1b" not in ended.stdout + ended.stderr
        assert "\u202e" not in ended.stdout + ended.stderr
        assert "[31m" in ended.stdout + ended.stderr


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_render_among_the_specs_is_refused_by_every_command(run: Run, story: Path, output: str) -> None:
    write_operator(story, instance="prod", rollout={"image": "registry.example.com/twgen:1.0.0"})
    made = ("--operator-config", "operator.json", "--identity", "twgen/prod", "-o", output)
    rendered = run("render", "specs", "--snapshot", "snapshot.json", *made)
    assert "twgen.io/intent-hash" in rendered.stdout, rendered.stderr
    (story / "specs" / f"rendered.{output}").write_text(rendered.stdout)
    for command in (("render", "--snapshot", "snapshot.json"), ("plan", "--snapshot", "snapshot.json")):
        ended = run(*command, "specs")
        assert (ended.returncode, ended.stdout) == (2, "")
        told = [line for line in ended.stderr.splitlines() if "is output of `twgen render`" in line]
        assert (len(told), "1 problem found" in ended.stderr) == (1, True), ended.stderr
    ended = run("validate", "specs")
    [line] = ended.stdout.splitlines()
    assert line.startswith(f"specs/rendered.{output}:")
    assert ended.returncode == 1
