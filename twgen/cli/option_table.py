"""The option table: one row for each option drives click, the environment and the documentation."""

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
    """The manager identity in Temporal's form."""
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
    """The duration, which may also be `2d` or `10min`."""
    from twgen.model.times import go_duration, parse_duration

    try:
        return parse_duration(go_duration(text) or text)
    except ValueError as error:
        such_as = f"{text}s, {text}m or {text}h" if text.isdecimal() else "90s or 1h30m"
        raise ValueError(f"is not a duration such as {such_as}") from error


def _reading_time(text: str) -> float:
    """The seconds of a duration that is not zero."""
    if not (seconds := _duration(text).total_seconds()):
        raise ValueError("is zero, which leaves no time to read anything")
    return seconds


def _interval(text: str) -> timedelta:
    """A duration of at least a second: a simulation uses it as a step."""
    if (length := _duration(text)) < timedelta(seconds=1):
        raise ValueError("is too short: it must be at least 1s")
    return length


def _gate(text: str) -> timedelta | None:
    """The duration of the gate; None: it fails."""
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
    """The name of a Secret, and the file with its content."""
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
    """JSON, unchanged."""
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
        raise ValueError("is not from 1 to 10Gi")
    return number


def _names(text: str) -> tuple[str, ...]:
    """Names, separated by commas or line breaks."""
    names = tuple(name.strip() for name in re.split("[,\n]", text))
    if not all(names):
        raise ValueError("is not NAME,NAME: one name is empty")
    return tuple(map(_printable, names))


def _kube_version(text: str) -> str:
    """A version of Kubernetes, by helm's rules."""
    if not re.fullmatch(r"v?\d+(\.\d+){0,2}([-+][0-9A-Za-z.+-]+)?", text, re.ASCII):
        raise ValueError("is not a version such as 1.36 or v1.36.1")
    return text


def release_name(text: str) -> str:
    """The name of a release, by helm's rules; raises ValueError."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?", text):
        raise ValueError("is not a valid release name: at most 53 lower-case letters, digits, - and .")
    return text


def _values(text: str) -> str:
    from twgen.errors import InvalidInput
    from twgen.yaml.reader import read_documents

    try:
        documents = read_documents(os.fsencode(text))
    except InvalidInput:  # helm reports the mistake
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
    Option("--snapshot", "Read FILE, which `twgen snapshot` printed, instead of the servers.", FILE),
    Option("--now", "Plan as of this time instead of the snapshot's time or the current time.", TIME),
    Option(
        "--timeout",
        "Wait this long for each answer of a server (20s); in Argo CD, for all answers together (40s).",
        READING_TIME,
    ),
    Option(
        "--identity",
        "Act as manager identity twgen/NAME, even if a RolloutPolicy sets another.",
        Form("NAME", _identity),
        of_application=True,
    ),
    Option("-n --namespace", "Use this Kubernetes namespace for documents that do not set one.", NAME),
    Option("--no-cluster", "Do not read Kubernetes."),
    Option("--kubeconfig", "Use this kubeconfig instead of KUBECONFIG.", FILE),
    Option("--context", "Use this context of the kubeconfig.", NAME),
    Option(
        "--offline", "Read no server. Render each worker as if it had never been deployed, to check it in CI."
    ),
    Option("--no-hooks", "Leave out the objects of rollouts, such as Jobs, for `kubectl diff`."),
    # as `kubectl apply --server-side` does: with argocd-controller, every object would differ by the tracking
    # annotation that Argo CD adds
    Option(
        "--field-manager", "Compare as if this field manager applied the manifests.", NAME, default="kubectl"
    ),
    Option(
        "--allow-unlisted-connections",
        "Allow connections that no Temporal profile lists, if they need no credentials. This is the default"
        " outside Argo CD.",
    ),
    Option(
        "--only-listed-connections",
        "Refuse connections that no Temporal profile lists, even if they need no credentials. This is the"
        " default in Argo CD.",
    ),
    Option(
        "--via",
        "Reach a Temporal server through another address, such as a forwarded port. Repeatable.",
        Form("ADDRESS=ADDRESS", _addresses),
        multiple=True,
    ),
    Option(
        "--ca-file",
        "Trust the certificates in FILE for Connections that name SECRET, unless a Temporal profile sets"
        " certificates. Repeatable.",
        Form("SECRET=FILE", _file_of_secret),
        multiple=True,
    ),
    Option(
        "--prometheus",
        "Query the Prometheus at URL for metrics with `server: NAME`, or without `server`. Repeatable.",
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
    Option("--release", "Use this release name (with --input Helm).", RELEASE, of_application=True),
    Option(
        "--value-files",
        "Use these value files, relative to the chart's folder, separated by commas (with --input Helm).",
        FILES,
        of_application=True,
    ),
    Option(
        "--values",
        "Use these values, as YAML. They override the value files (with --input Helm).",
        Form("YAML", _values),
        of_application=True,
    ),
    Option(
        "--kube-version",
        "Set the cluster's Kubernetes version, for `.Capabilities` (with --input Helm).",
        KUBE_VERSION,
    ),
    Option(
        "--api-versions",
        "Set the cluster's APIs, separated by commas, for `.Capabilities` (with --input Helm).",
        NAMES,
    ),
    Option("--strict", "Treat warnings as errors.", of_application=True),
    Option("-q --quiet", "Do not print warnings.", of_application=True),
    Option("-v --verbose", "Show the details of every worker on a terminal, even if there are many."),
    Option("--color", "Colour the text.", Choice(["auto", "always", "never"]), default="auto"),
    Option("--exit-code", "Exit with 1 if changes are pending or a worker is not Settled."),
    Option("-w --watch", "Read repeatedly, and show each change."),
    Option("--interval", "Read at this interval with --watch.", READING_TIME, default="5s"),
    Option("--workflow-duration", "Assume that a pinned workflow runs this long.", DURATION, default="1h"),
    Option("--startup", "Assume that a new pod polls after this time.", DURATION, default="30s"),
    Option("--gate", "Assume that the gate passes after this time, or that it `fails`.", GATE, default="1m"),
    Option(
        "--drainage-interval",
        "Assume that Temporal counts the workflows of a draining version at this interval.",
        INTERVAL,
        default="3m",
    ),
    Option("--render-interval", "Assume that renders are this far apart.", INTERVAL, default="3m"),
    Option("--starts-per-hour", "Assume that this many workflows start in an hour. Needs --failing.", STARTS),
    Option(
        "--failing",
        "Report how soon a version with this failure rate would be detected. Needs --starts-per-hour.",
        RATIO,
    ),
    Option(
        "--window",
        "Estimate the remaining time from workflows that closed within this period.",
        INTERVAL,
        default="7d",
    ),
    Option(
        "--version",
        "End the workflows that are pinned to this version.",
        NAME,
        renamed="of_version",
    ),
    Option(
        "--type",
        "End only workflows of this type. Repeatable.",
        NAME,
        renamed="workflow_types",
        multiple=True,
    ),
    Option("--older-than", "End only workflows that started at least this long ago.", INTERVAL),
    Option("--move", "Move the workflows to the current version."),
    Option("--to", "Move the workflows to this version instead. Needs --move.", NAME, renamed="to_version"),
    Option("--without-replay", "Move the workflows without a passed replay. Needs --move."),
    Option("--signal", "Send this signal to the workflows.", NAME),
    Option("--signal-input", "Pass this argument to the signal. Needs --signal.", Form("JSON", _json)),
    Option("--cancel", "Request cancellation of the workflows."),
    Option("--terminate", "Terminate the workflows."),
    Option("--again", "Repeat an operation that has already ended for this version."),
    Option("--wait", "Wait for a running batch operation to end, then for this one."),
    Option("-d --folder", "Write the histories into this folder.", Form("FOLDER")),
    Option(
        "--deployment-name", "Read this Worker Deployment, using Temporal's own environment settings.", NAME
    ),
    Option("--task-queue", "Include open workflows on this task queue that have no version yet.", NAME),
    Option("--upgrading", "Write only histories of auto-upgrade workflows."),
    Option("--shared", "Make the files readable by every user, such as another user in the same Pod."),
    Option("--sample", "Write at most this many histories of each workflow type.", COUNT, default="50"),
    Option("--max-bytes", "Write histories of at most this total size.", BYTES, default="64Mi"),
    Option(
        "--from-cluster", "Show the statuses that rollouts wrote in the cluster, without Git and Temporal."
    ),
    Option("-A --all-namespaces", "Show the rollouts of all namespaces; implies --from-cluster."),
    Option("--worker", "Choose this worker, if there are several.", NAME),
    Option("--argocd-namespace", "Check the Argo CD in this namespace.", NAME, default="argocd"),
    Option("--listen", "Listen at this address, instead of a free port of 127.0.0.1.", ADDRESS),
    Option("--title", "Use this title for the page, instead of one with the kubeconfig's context.", NAME),
    Option("--no-browser", "Do not open a browser."),
    Option("--from", "Claim the worker from this manager, its current one.", NAME, renamed="owner"),
    Option("-y --yes", "Do not ask for confirmation."),
    Option("--full", "Send all traffic to the target, and skip the remaining steps."),
    Option(
        "--keep", "Keep this many of the newest drained versions (the policy's keepRecords, or 5).", COUNT
    ),
    Option("--dry-run", "Show the change without making it."),
    Option("--skip-gate", "Continue even if the gate or the replay has not passed."),
    Option("--once/--until-settled", "Make at most one change, or continue until settled (the default)."),
    Option("--within", "Give up after this time (1h; no limit with --intent).", READING_TIME),
    Option("--intent", "Roll out the intent in this ConfigMap of the cluster, instead of PATHs.", OBJECT),
    Option("--intent-hash", "Exit once the intent has another hash.", NAME),
    Option("--every", "Keep running, and check at this interval.", READING_TIME),
    Option("--metrics", "Serve /metrics and /healthz at this address, or at :PORT. Needs --every.", ADDRESS),
    Option("--shards", "Share the workers among this many ticks, by Temporal namespace.", COUNT, default="1"),
    Option("--shard", "Set the index of this tick among --shards, counted from 0.", ORDINAL),
    Option(
        "--argocd-server",
        "Refresh the applications of the Argo CD whose API server has this address.",
        ADDRESS,
    ),
    Option("--argocd-token-file", "Read the Argo CD token from FILE instead of ARGOCD_AUTH_TOKEN.", FILE),
    Option("--argocd-ca-file", "Trust the certificates in FILE for Argo CD.", FILE),
    Option("--check", "Only check: exit with 1 if the ledger is outdated, and write nothing."),
)
OPTIONS: Mapping[str, Option] = {option.key: option for option in _ROWS}
"""Every option of every command, by the parameter of its function."""
