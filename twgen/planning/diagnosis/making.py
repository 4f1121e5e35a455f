"""How findings are made."""

from twgen.model.diagnosis import Finding, Severity


def problem(about: str, says: str, because: str, remedy: str) -> Finding:
    """Something that does not work, or will not."""
    return Finding(about, Severity.PROBLEM, says, because, remedy)


def advice(about: str, says: str, because: str, remedy: str) -> Finding:
    """Something that works, with less than it could have."""
    return Finding(about, Severity.ADVICE, says, because, remedy)


def named(name: str) -> str:
    """`<namespace>/<name>` as kubectl takes it."""
    namespace, _, own = name.partition("/")
    return f"-n {namespace} {own}"
