"""What a spec may hold at most, and the form of its texts; a test holds the JSON Schemas to the same.

The patterns are those of the schemas, letter by letter: `$` alone would let the end of a line pass.
"""

from datetime import timedelta

RAMP_PERCENTAGES = (1, 99)
MOST_STEPS = 20
SHORTEST_PAUSE = timedelta(seconds=30)
LONGEST_TEXT = 1000
"""Temporal's own limit for names and identities, `limit.maxIDLength`, unless it is changed."""

LONGEST_LABEL = 63
"""A name that becomes the value of a label, and a namespace."""
LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$(?!\\n)"
"""RFC 1123, as Kubernetes checks namespaces; Temporal refuses a dot in the name of a Worker Deployment."""
BUILD_ID = "^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$(?!\\n)"
"""As Kubernetes checks the values of labels."""
LONGEST_NAME = 253
NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$(?!\\n)"
"""RFC 1123, as Kubernetes checks the names of most objects."""
DATA_KEY = "^(?!\\.\\.)(?!\\.$)[-._a-zA-Z0-9]+$(?!\\n)"
"""As Kubernetes checks the keys of Secrets and ConfigMaps."""
_INSIDE = "[^\\x00-\\x1f\\x7f]"
_AT_ENDS = "[^\\s\\x00-\\x1f\\x7f\u2018-\u201f]"
LINE = f"^(?!.*(\\{{\\{{|\\$[{{(])){_AT_ENDS}({_INSIDE}*{_AT_ENDS})?$(?!\\n)"
"""Text on one line that is filled in, without blanks and typographic quotes at its ends.

The name of a class may hold a `$`.
"""
WORKFLOW_TYPE = LINE.replace("^", "^(?!.*['\"\\\\])", 1)
"""One that a query of visibility can name: servers differ in what they make of a quote or a backslash."""
MESSAGE_TYPE = "^[a-zA-Z_][a-zA-Z0-9_]*(\\.[a-zA-Z_][a-zA-Z0-9_]*)*$(?!\\n)"
"""A full name, as protobuf has it: without a leading dot and without the host of a type URL."""
FILLED = "^(?![\\s\\S]*(\\{\\{|\\$|#\\{))"
"""Text without what Helm, a shell or a pipeline is yet to fill in."""
IDENTITY = LINE.replace("^", "^(?!/)(?!.*//)(?!.*/$)", 1)
"""A line whose parts, which a slash divides, all say something."""
SERVER_NAME = "^[a-zA-Z0-9.-]+$(?!\\n)"
HOST_PORT = (
    "^([A-Za-z0-9.-]+|\\[[0-9a-fA-F:]+\\])"
    ":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$(?!\\n)"
)
ONLY_PLACEHOLDERS = (
    "only {{ .DeploymentName }}, {{ .BuildID }} and {{ .TemporalNamespace }} are filled in, and (without"
    " blanks) {{temporal_worker_deployment_name}}, {{temporal_worker_build_id}} and {{temporal_namespace}}"
)
"""What is wrong with any other."""
PERCENTAGE = "^[0-9]{1,9}%$(?!\\n)"
SHARE = "^0{0,6}(100|[0-9]{1,2})%$(?!\\n)"
"""A percentage of what there is at most."""

BYTES = "^[1-9][0-9]{0,9}(k|M|G|Ki|Mi|Gi)?$(?!\\n)"
"""A whole number of bytes, with the suffixes of a quantity that anybody needs."""
