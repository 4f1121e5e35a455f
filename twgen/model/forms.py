"""Patterns and length limits for strings in specs.

Each pattern has a lookahead after its `$`, because `$` alone would accept a newline at the end of the text.
"""

from twgen.model.shapes import UNFILLED, text

RAMP_PERCENTAGES = (1, 99)
MOST_STEPS = 20
LONGEST_TEXT = 1000
"""Temporal's default limit for names and identities, `limit.maxIDLength`."""

LONGEST_LABEL = 63
"""The maximum length of a namespace, and of a name that is used as a label value."""
LABEL = text(
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$(?!\\n)",
    "a name of lower-case letters, digits and -",
    most=LONGEST_LABEL,
)
"""The Kubernetes rule for namespaces (RFC 1123). Temporal rejects dots in the name of a Worker Deployment."""
LONGEST_BUILD_ID = 63
BUILD_ID = text(
    "^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$(?!\\n)",
    "a valid build ID: letters, digits, - _ and .",
    most=LONGEST_BUILD_ID,
)
"""The Kubernetes rule for label values."""
LONGEST_NAME = 253
NAME = text(
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$(?!\\n)",
    "a name of lower-case letters, digits, - and .",
    most=LONGEST_NAME,
)
"""The Kubernetes rule for most object names (RFC 1123)."""
DATA_KEY = text(
    "^(?!\\.\\.)(?!\\.$)[-._a-zA-Z0-9]+$(?!\\n)", "a key of letters, digits, -, _ and .", most=LONGEST_NAME
)
"""The Kubernetes rule for keys in Secrets and ConfigMaps."""
_INSIDE = "[^\\x00-\\x1f\\x7f]"
_AT_ENDS = "[^\\s\\x00-\\x1f\\x7f\u2018-\u201f]"
_LINE = f"^(?!.*(\\{{\\{{|\\$[{{(])){_AT_ENDS}({_INSIDE}*{_AT_ENDS})?$(?!\\n)"
LINE = text(
    _LINE, wrong="must be one line, without spaces or typographic quotes at its ends", most=LONGEST_TEXT
)
"""A single line of text without unfilled variables, and without spaces or typographic quotes at either end.

A `$` is allowed, because some class names contain it."""
WORKFLOW_TYPE = text(
    _LINE.replace("^", "^(?!.*['\"\\\\])", 1), "a workflow name: one line, without quotes", most=LONGEST_TEXT
)
"""A workflow type in a visibility query. Quotes and backslashes are forbidden: servers escape them
differently."""
MESSAGE_TYPE = text(
    "^[a-zA-Z_][a-zA-Z0-9_]*(\\.[a-zA-Z_][a-zA-Z0-9_]*)*$(?!\\n)",
    "the full name of a protobuf message, such as shop.v1.Order",
    most=LONGEST_TEXT,
)
"""The full name of a protobuf message, without a leading dot and without the host of a type URL."""
FILLED = "^(?![\\s\\S]*(\\{\\{|\\$|#\\{))"
"""Matches text that contains no unfilled variables of Helm, a shell or a pipeline."""
CUSTOM_BUILD_ID = text(FILLED, wrong=UNFILLED, most=LONGEST_BUILD_ID)
IDENTITY = text(
    _LINE.replace("^", "^(?!/)(?!.*//)(?!.*/$)", 1),
    "an identity such as payments/prod: one line without empty parts",
    most=LONGEST_TEXT,
)
"""A single line of text without empty parts between slashes."""
SERVER_NAME = text("^[a-zA-Z0-9.-]+$(?!\\n)", "a host name", most=LONGEST_TEXT)
HOST_PORT = text(
    "^([A-Za-z0-9.-]+|\\[[0-9a-fA-F:]+\\])"
    ":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$(?!\\n)",
    "host:port, such as temporal.example.com:7233",
    most=LONGEST_TEXT,
)
WORDS = text(most=LONGEST_TEXT)
"""Any text."""
ONLY_PLACEHOLDERS = (
    "only {{ .DeploymentName }}, {{ .BuildID }} and {{ .TemporalNamespace }} are filled in, and (without"
    " blanks) {{temporal_worker_deployment_name}}, {{temporal_worker_build_id}} and {{temporal_namespace}}"
)
"""The message about an unknown placeholder."""
PERCENTAGE = "^[0-9]{1,9}%$(?!\\n)"
SHARE = "^0{0,6}(100|[0-9]{1,2})%$(?!\\n)"
"""A percentage up to 100."""
