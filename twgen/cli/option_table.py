"""The option table. Each row defines an option for click, the environment variables and the documentation."""

import json
import os
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from twgen.cli.option import Choice, Form, Option


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("contains a character that cannot be printed")
    return text


def _identity(text: str) -> str:
    """The manager identity as Temporal stores it."""
    from twgen.model.forms import IDENTITY
    from twgen.model.operator import manager_identity
    from twgen.model.shapes import fits

    if not fits(IDENTITY, _printable(text)):
        raise ValueError("is not a valid identity: one line without empty parts, such as payments/prod")
    return manager_identity(text)


def _time(text: str) -> datetime:
    from twgen.model.times import SUCH_AS, parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError(f"is not {SUCH_AS}") from error


def _duration(text: str) -> timedelta:
    """A duration, also in a form such as `2d` or `10min`."""
    from twgen.model.times import parse_spoken_duration

    try:
        return parse_spoken_duration(text)
    except ValueError as error:
        such_as = f"{text}s, {text}m or {text}h" if text.isdecimal() else "90s or 1h30m"
        raise ValueError(f"is not a duration such as {such_as}") from error


def _reading_time(text: str) -> float:
    """The number of seconds in a duration, which must not be zero."""
    if not (seconds := _duration(text).total_seconds()):
        raise ValueError("is zero, which leaves no time to read anything")
    return seconds


def _interval(text: str) -> timedelta:
    """A duration of at least one second, because a simulation advances by it."""
    if (length := _duration(text)) < timedelta(seconds=1):
        raise ValueError("is too short: it must be at least 1s")
    return length


def _gate(text: str) -> timedelta | None:
    """The duration of the gate, or None if the gate fails."""
    try:
        return None if text == "fails" else _duration(text)
    except ValueError as error:
        raise ValueError(f"{error}, or 'fails'") from error


def _number(text: str, most: float) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII):
        raise ValueError("is not a number")
    if not 0 < (number := float(text)) <= most:
        percent = f": {text}% is {number / 100:g}" if 1 == most < number <= 100 else ""
        raise ValueError(f"must be above 0 and at most {most:g}{percent}")
    return number


_MOST_BYTES = 10 * 2**30


def _addresses(text: str) -> tuple[str, ...]:
    if not (match := re.fullmatch(r"([^\s=/]+:\d{1,5})=([^\s=/]+:\d{1,5})", text)):
        raise ValueError("is not ADDRESS=ADDRESS such as temporal.prod.svc:7233=127.0.0.1:7233")
    return match.groups()


def _object(text: str) -> tuple[str, ...]:
    if not (match := re.fullmatch(r"([a-z0-9-]{1,63})/([a-z0-9][a-z0-9.-]{0,252})", text)):
        raise ValueError("is not NAMESPACE/NAME")
    return match.groups()


def _file_of_secret(text: str) -> tuple[str, str]:
    """The name of a Secret, and the file that contains its certificates."""
    secret, _, file = text.partition("=")
    if not secret or not file:
        raise ValueError("is not SECRET=FILE such as temporal-ca=ca.crt")
    return _printable(secret), file


def _prometheus(text: str) -> object:
    from twgen.records.operator_config import server_of

    name, _, url = text.partition("=")
    try:
        return server_of(name, url)
    except ValueError as error:
        raise ValueError(f"is not NAME=URL such as shared=http://127.0.0.1:9090: {error}") from error


def _json(text: str) -> bytes:
    """Check that the text is JSON, and return its bytes unchanged."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError('is not JSON such as {"now": true} or "a text"') from error
    return text.encode()


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,4}", text, re.ASCII):
        raise ValueError("is not a whole number from 1 to 99999")
    return int(text)


def _ordinal(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _bytes(text: str) -> int:
    from twgen.versioning.quantities import quantity_nanos

    try:
        number = quantity_nanos(text) // 10**9
    except ValueError as error:
        raise ValueError("is not a number of bytes such as 64Mi") from error
    if not 1 <= number <= _MOST_BYTES:
        raise ValueError("must be from 1 to 10Gi")
    return number


def _names(text: str) -> tuple[str, ...]:
    """The names in a text, separated by commas or line breaks."""
    names = tuple(name.strip() for name in re.split("[,\n]", text))
    if not all(names):
        raise ValueError("is not NAME,NAME: one name is empty")
    return tuple(map(_printable, names))


def _kube_version(text: str) -> str:
    """A Kubernetes version that helm accepts."""
    if not re.fullmatch(r"v?\d+(\.\d+){0,2}([-+][0-9A-Za-z.+-]+)?", text, re.ASCII):
        raise ValueError("is not a version such as 1.36 or v1.36.1")
    return text


def release_name(text: str) -> str:
    """A release name that helm accepts. Any other text raises ValueError."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?", text):
        raise ValueError("is not a valid release name: at most 53 lower-case letters, digits, - and .")
    return text


def _values(text: str) -> str:
    from twgen.errors import InvalidInput
    from twgen.yaml.reader import read_documents

    try:
        documents = read_documents(os.fsencode(text))
    except InvalidInput:  # helm reports the YAML error
        return text
    if not all(isinstance(value, dict | None) for value in documents):
        raise ValueError("must be a YAML mapping such as 'replicas: 2'; for a file, use --value-files")
    return text


FILE = Form("FILE")
ADDRESS = Form("ADDRESS", _printable)
COUNT = Form("NUMBER", _count)
FILES = Form("FILE,FILE", _names)
NAMES = Form("NAME,NAME", _names)
KUBE_VERSION = Form("VERSION", _kube_version)
NAME = Form("NAME", _printable)
READING_TIME = Form("DURATION", _reading_time)
DURATION = Form("DURATION", _duration)
INTERVAL = Form("DURATION", _interval)
ORDINAL = Form("NUMBER", _ordinal)
BYTES = Form("BYTES", _bytes)
RELEASE = Form("NAME", release_name)
STARTS = Form("NUMBER", partial(_number, most=100_000))
RATIO = Form("RATIO", partial(_number, most=1))
TIME = Form("TIME", _time)
OBJECT = Form("NAMESPACE/NAME", _object)
GATE = Form("DURATION|fails", _gate)

_ROWS = (
    Option("--snapshot", "Read FILE (the output of `twgen snapshot`) instead of the servers.", FILE),
    Option("--now", "Plan for this time. The default is the snapshot's time or the current time.", TIME),
    Option(
        "--timeout",
        "Wait at most this long for each response (20s). In Argo CD, the limit is for all responses"
        " together (40s).",
        READING_TIME,
    ),
    Option(
        "--identity",
        "Act as manager identity twgen/NAME. This overrides the identity in a RolloutPolicy.",
        Form("NAME", _identity),
        of_application=True,
    ),
    Option("-n --namespace", "Use this Kubernetes namespace for documents that do not set one.", NAME),
    Option("--no-cluster", "Do not read Kubernetes."),
    Option("--kubeconfig", "Use this kubeconfig instead of KUBECONFIG.", FILE),
    Option("--context", "Use this context of the kubeconfig.", NAME),
    Option(
        "--offline",
        "Read no server. Render each worker as if it had never been deployed. This is useful in CI.",
    ),
    Option("--no-hooks", "Leave out rollout objects such as Jobs. This is useful with `kubectl diff`."),
    # `kubectl apply --server-side` uses this name too. With argocd-controller, every object would differ in
    # the tracking annotation that Argo CD adds
    Option(
        "--field-manager", "Compare as if this field manager applied the manifests.", NAME, default="kubectl"
    ),
    Option(
        "--allow-unlisted-connections",
        "Allow connections that are not in a Temporal profile, if they need no credentials. This is the"
        " default outside Argo CD.",
    ),
    Option(
        "--only-listed-connections",
        "Refuse connections that are not in a Temporal profile, even if they need no credentials. This is"
        " the default in Argo CD.",
    ),
    Option(
        "--via",
        "Reach the Temporal server at the first address through the second address, such as a forwarded"
        " port. Repeatable.",
        Form("ADDRESS=ADDRESS", _addresses),
        multiple=True,
    ),
    Option(
        "--ca-file",
        "Trust the certificates in FILE for Connections that name SECRET. Certificates in a Temporal profile"
        " take precedence. Repeatable.",
        Form("SECRET=FILE", _file_of_secret),
        multiple=True,
    ),
    Option(
        "--prometheus",
        "Query the Prometheus at URL for metrics with `server: NAME`. Metrics without `server` use this"
        " Prometheus if it is the only one. Repeatable.",
        Form("NAME=URL", _prometheus),
        multiple=True,
    ),
    Option(
        "--operator-config",
        "Use this OperatorConfig. Outside Argo CD, only its `rollout`, `attached`, `prometheus` and `links`"
        " are used.",
        FILE,
    ),
    Option(
        "--input",
        "Read the folder as YAML documents (Directory), or render it with kustomize or helm.",
        Choice(["Directory", "Kustomize", "Helm"]),
        of_application=True,
    ),
    Option("--release", "Use this Helm release name. Needs --input Helm.", RELEASE, of_application=True),
    Option(
        "--value-files",
        "Use these value files, separated by commas. Paths are relative to the chart's folder. Needs"
        " --input Helm.",
        FILES,
        of_application=True,
    ),
    Option(
        "--values",
        "Use the values in this YAML text, which override the value files. Needs --input Helm.",
        Form("YAML", _values),
        of_application=True,
    ),
    Option(
        "--kube-version",
        "Set the Kubernetes version in `.Capabilities`. Needs --input Helm.",
        KUBE_VERSION,
    ),
    Option(
        "--api-versions",
        "Set the API versions in `.Capabilities`, separated by commas. Needs --input Helm.",
        NAMES,
    ),
    Option("--strict", "Treat warnings as errors.", of_application=True),
    Option("-q --quiet", "Do not print warnings.", of_application=True),
    Option("-v --verbose", "On a terminal, show the details of every worker, even if there are many."),
    Option("--color", "Colour the text.", Choice(["auto", "always", "never"]), default="auto"),
    Option("--exit-code", "Exit with 1 if changes are pending or a worker is not Settled."),
    Option("-w --watch", "Keep watching, and show each change."),
    Option("--interval", "With --watch, wait this long between reads.", READING_TIME, default="5s"),
    Option("--workflow-duration", "Assume that a pinned workflow runs this long.", DURATION, default="1h"),
    Option("--startup", "Assume that a new pod starts to poll after this time.", DURATION, default="30s"),
    Option("--gate", "Assume that the gate passes after this time, or that it `fails`.", GATE, default="1m"),
    Option(
        "--drainage-interval",
        "Assume that Temporal recounts a draining version's workflows at this interval.",
        INTERVAL,
        default="3m",
    ),
    Option("--render-interval", "Assume that this time passes between renders.", INTERVAL, default="3m"),
    Option("--starts-per-hour", "Assume that this many workflows start per hour. Needs --failing.", STARTS),
    Option(
        "--failing",
        "Report how soon a version with this failure rate would be detected. Needs --starts-per-hour.",
        RATIO,
    ),
    Option(
        "--window",
        "Estimate the remaining time from workflows that closed during the last DURATION.",
        INTERVAL,
        default="7d",
    ),
    Option(
        "--version",
        "End or move the workflows that are pinned to this version.",
        NAME,
        renamed="of_version",
    ),
    Option(
        "--type",
        "Select only workflows of this type. Repeatable.",
        NAME,
        renamed="workflow_types",
        multiple=True,
    ),
    Option("--older-than", "Select only workflows that started at least this long ago.", INTERVAL),
    Option("--move", "Move the workflows to the current version."),
    Option("--to", "Move the workflows to this version. Needs --move.", NAME, renamed="to_version"),
    Option("--without-replay", "Move the workflows even if no replay has passed. Needs --move."),
    Option("--signal", "Send this signal to the workflows.", NAME),
    Option("--signal-input", "Pass this argument to the signal. Needs --signal.", Form("JSON", _json)),
    Option("--cancel", "Request cancellation of the workflows."),
    Option("--terminate", "Terminate the workflows."),
    Option("--again", "Start the operation again, even if it already ran for this version."),
    Option(
        "--wait",
        "Wait until the batch operation ends. If another operation is running, wait for that one first.",
    ),
    Option("-d --folder", "Write the histories into this folder.", Form("FOLDER")),
    Option(
        "--deployment-name",
        "Read this Worker Deployment. Temporal's own environment settings determine the connection.",
        NAME,
    ),
    Option("--task-queue", "Include open workflows on this task queue if they have no version yet.", NAME),
    Option("--upgrading", "Write only histories of auto-upgrade workflows."),
    Option("--shared", "Make the files readable by every user, such as the user of another container."),
    Option("--sample", "Write at most this many histories of each workflow type.", COUNT, default="50"),
    Option("--max-bytes", "Limit the total size of the histories to this many bytes.", BYTES, default="64Mi"),
    Option(
        "--from-cluster",
        "Show the statuses that rollouts wrote in the cluster, without reading Git or Temporal.",
    ),
    Option("-A --all-namespaces", "Show the rollouts of all namespaces. Implies --from-cluster."),
    Option("--worker", "Select this worker if there are several.", NAME),
    Option("--argocd-namespace", "Check the Argo CD in this namespace.", NAME, default="argocd"),
    Option("--listen", "Listen on this address. The default is a free port of 127.0.0.1.", ADDRESS),
    Option("--title", "Set the title of the page. The default title names the kubeconfig's context.", NAME),
    Option("--no-browser", "Do not open a browser."),
    Option("--from", "Take over the worker from its current manager, NAME.", NAME, renamed="owner"),
    Option(
        "-y --yes",
        "Do not ask for confirmation. Without a terminal, commands that always ask require this option.",
    ),
    Option("--full", "Send all traffic to the target, and skip the remaining steps."),
    Option(
        "--keep",
        "Keep this many of the newest drained versions. The default is the policy's keepRecords, or 5.",
        COUNT,
    ),
    Option("--dry-run", "Show the change without making it."),
    Option("--skip-gate", "Continue even if the gate or the replay has not passed."),
    Option("--once/--until-settled", "Make at most one change, or continue until settled (the default)."),
    Option(
        "--within",
        "Give up after this time. The default is 1h. With --intent, there is no limit by default.",
        READING_TIME,
    ),
    Option("--intent", "Read the intent from this ConfigMap in the cluster instead of PATHs.", OBJECT),
    Option("--intent-hash", "Exit when the intent's hash differs from this one.", NAME),
    Option("--every", "Keep running, and check at this interval.", READING_TIME),
    Option(
        "--metrics",
        "Serve /metrics, /healthz and a read-only page of all rollouts on this address. With :PORT, listen on"
        " all addresses. Needs --every.",
        ADDRESS,
    ),
    Option(
        "--shards",
        "Divide the workers among this many ticks. One tick handles all workers of a Temporal namespace.",
        COUNT,
        default="1",
    ),
    Option("--shard", "Set the index of this tick. The first tick has index 0.", ORDINAL),
    Option(
        "--argocd-server", "Refresh applications through the Argo CD API server at this address.", ADDRESS
    ),
    Option("--argocd-token-file", "Read the Argo CD token from FILE instead of ARGOCD_AUTH_TOKEN.", FILE),
    Option("--argocd-ca-file", "Trust the certificates in FILE for Argo CD.", FILE),
    Option("--check", "Write nothing, and exit with 1 if the ledger is outdated."),
)
OPTIONS: Mapping[str, Option] = {option.key: option for option in _ROWS}
"""All options of all commands, by the name of the parameter in the command's function."""
