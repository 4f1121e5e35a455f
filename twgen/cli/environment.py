"""The environment of twgen (a terminal or Argo CD's plugin), and the settings that depend on it."""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from twgen.cli.output import warn
from twgen.cli.signals import is_plugin
from twgen.errors import InvalidInput

if TYPE_CHECKING:
    from twgen.clients.kubeconfig import ClusterAccess
    from twgen.clients.profiles import Profiles
    from twgen.model.operator import Caller, Operator, PrometheusServer
    from twgen.specs.spec_document import NamespaceRule

COMPLETION = "_TWGEN_COMPLETE"
"""The variable that a shell sets to request completions."""
_PARAMETERS = "ARGOCD_APP_PARAMETERS"
_OF_APPLICATION = "ARGOCD_ENV_"
"""The prefix that Argo CD adds to the names in `plugin.env` of an Application."""
_USELESS = (
    "{} in plugin.env of the Application sets nothing: remove it, or use TWGEN_VALUES; let Argo CD Image"
    " Updater write into a value file or a kustomization of the repository"
)
_VARIABLE = f"{_OF_APPLICATION}TWGEN_"


class ApplicationSetting(NamedTuple):
    """An option that an Argo CD application sets."""

    value: str
    source: str
    """The name of the plugin parameter or variable, for messages."""
    mistake: str = ""
    """The reason why the setting is malformed, or empty if the setting is valid."""


class Terminal:
    """The environment in a user's shell or a CI job."""

    timeout = 20.0
    """The time limit for each response, in seconds."""
    is_plugin = False
    settings_of_application: Mapping[str, ApplicationSetting] = {}
    release = ""
    """The default name of a Helm release."""
    kube_version = ""
    api_versions: tuple[str, ...] = ()
    """The cluster's API versions for Helm's `.Capabilities`, or empty if they are unknown."""
    checkout = ""
    """All rendered files must be in this folder. If it is empty, they must be in the Git repository."""
    why_no_repository = "the specs are not in a Git repository"
    """The reason to report if the specs have no Git history, worded as the end of a sentence."""

    def namespace_rule(self, namespace: str) -> "NamespaceRule":
        """The rule that gives a document its namespace. `namespace` is the value of `-n`."""
        from twgen.specs.spec_document import NamespaceRule

        return NamespaceRule(namespace)

    def rendering_caller(self, identity: str, _: "Operator") -> "Caller":
        """The caller of a render, which has an identity only if `--identity` is set."""
        from twgen.model.operator import Caller

        return Caller(identity, forced=bool(identity))

    def planning_caller(self, identity: str, operator: "Operator") -> "Caller":
        """The caller of a plan: the user, unless `--identity` sets another identity."""
        if identity:
            return self.rendering_caller(identity, operator)
        import getpass
        import socket

        from twgen.model.operator import Caller
        from twgen.reporting.printable import printable

        try:
            user = printable(getpass.getuser())
        except (KeyError, OSError):  # in a container, the user ID may have no name
            user = str(os.getuid())
        return Caller(f"twgen/{user}@{socket.gethostname()}", is_person=True)

    def profiles(self, _: "Operator", *, allow_unlisted: bool | None) -> "Profiles":
        """The user's Temporal profiles. By default, connections without credentials need no profile."""
        from twgen.clients.profiles import Profiles, load_profiles

        listed_profiles = load_profiles(os.environ, use_environment=True)
        return Profiles(listed_profiles, allow_unlisted=allow_unlisted is not False, of_person=True)

    def prometheus(self, operator: "Operator") -> "tuple[PrometheusServer, ...]":
        """All servers in the operator's file, because the user chose that file."""
        return operator.prometheus

    def prometheus_remedy(self, _: "Operator") -> str:
        """The remedy if a metric's server is not listed, worded as the end of a sentence."""
        return "give --prometheus NAME=URL, or an --operator-config that lists it"

    def cluster(self, _: "Operator", *, quiet: bool) -> "ClusterAccess | None":
        """The cluster that kubectl would use, or this Pod's own. If neither exists, warn and return None."""
        from pathlib import Path

        from twgen.clients.kubeconfig import ClusterAccess

        if "KUBECONFIG" in os.environ or Path(usual_kubeconfig()).exists():
            return ClusterAccess(usual_kubeconfig())
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            return ClusterAccess()
        if not quiet:
            warn(["without a kubeconfig, twgen reads no cluster: if that is intended, give --no-cluster"])
        return None


class Plugin:
    """The environment of Argo CD's config-management plugin. Argo CD stops a plugin after 60 s.

    Argo CD starts the plugin in a checkout, which may contain any file, and shows its stderr only on failure.
    """

    timeout = 40.0
    """The time limit for all reads together, in seconds."""
    is_plugin = True

    def __init__(self) -> None:
        from twgen.model.operator import Application

        self._application = Application(
            os.environ["ARGOCD_APP_NAME"], os.environ.get("ARGOCD_APP_PROJECT_NAME", "")
        )
        # outside Argo CD's own namespace, an Application's name has the prefix `<namespace>_`
        self.release = self._application.name.rpartition("_")[2]
        self.kube_version = os.environ.get("KUBE_VERSION", "")
        self.api_versions = tuple(filter(None, os.environ.get("KUBE_API_VERSIONS", "").split(",")))
        path, folder = os.environ.get("ARGOCD_APP_SOURCE_PATH", "").strip("./"), os.path.realpath(".")
        self.checkout = folder.removesuffix(f"/{path}") if path else folder
        self.settings_of_application = _settings_of_application()
        """The options that the application sets, by name, such as `strict`.

        A repository can set these options in `.argocd-source.yaml`, so only harmless options are allowed.
        """

    @property
    def why_no_repository(self) -> str:
        """The reason to report if the specs have no Git history, worded as the end of a sentence."""
        if os.environ.get("ARGOCD_APP_SOURCE_REPO_URL", "").startswith("oci://"):
            return "the application's source is an OCI image, which has no Git history"
        if not re.fullmatch(r"[0-9a-f]{40,64}", os.environ.get("ARGOCD_APP_REVISION", "")):
            return "the application's source is not a Git commit (it is a chart, or files of a local sync)"
        return "Argo CD left out .git (reposerver.plugin.tar.exclusions)"

    def namespace_rule(self, namespace: str) -> "NamespaceRule":
        """The rule that allows only the application's namespace."""
        from twgen.specs.spec_document import NamespaceRule

        only = namespace or os.environ.get("ARGOCD_APP_NAMESPACE", "")
        return NamespaceRule(only, only=bool(only))

    def rendering_caller(self, identity: str, operator: "Operator") -> "Caller":
        """The caller of a render, with the identity from `--identity` or the operator's `instance`."""
        from twgen.model.operator import Caller

        name = self._application.name
        instance = f"twgen/{operator.instance}/{name}" if operator.instance else ""
        return Caller(identity or instance, forced=bool(identity), application=name)

    planning_caller = rendering_caller

    def profiles(self, operator: "Operator", *, allow_unlisted: bool | None) -> "Profiles":
        """The operator's credentials that the application's project is allowed to use."""
        from twgen.clients.profiles import Profiles, load_profiles

        file = operator.temporal.config_file
        listed_profiles = load_profiles(os.environ, file, use_environment=False, in_repository=True)
        return Profiles(
            listed_profiles,
            lambda name: operator.may_use(name, self._application),
            bool(allow_unlisted),
            subject=f"Argo CD project {self._application.project!r}",
            granted_in=f"temporal.profiles of {operator.file or 'the file in TWGEN_OPERATOR_CONFIG'}",
        )

    def prometheus(self, operator: "Operator") -> "tuple[PrometheusServer, ...]":
        """The Prometheus servers that the application's project is allowed to use."""
        return operator.prometheus_of(self._application)

    def prometheus_remedy(self, operator: "Operator") -> str:
        """The remedy if a metric's server is not listed, worded as the end of a sentence."""
        file = operator.file or "the file in TWGEN_OPERATOR_CONFIG"
        return (
            f"the operator must list Argo CD project {self._application.project!r} in `prometheus` of {file}"
        )

    def cluster(self, operator: "Operator", *, quiet: bool) -> "ClusterAccess | None":  # noqa: ARG002
        """The cluster from the operator's file, because Argo CD does not pass the destination to a plugin."""
        from twgen.clients.kubeconfig import ClusterAccess

        cluster = operator.cluster_of(self._application)
        return ClusterAccess(cluster.kubeconfig, cluster.context) if cluster else None


RunContext = Terminal | Plugin


@cache
def environment() -> RunContext:
    """The environment of this process. Raises InvalidInput if Argo CD's parameters cannot be read."""
    return Plugin() if is_plugin() else Terminal()


def usual_kubeconfig() -> str:
    """The kubeconfig that kubectl would read. The file might not exist."""
    # Path.expanduser raises if the user has no home
    return os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")  # noqa: PTH111


def _such_as(name: str) -> str:
    """An example of a valid parameter."""
    values = {"valueFiles": '"array": ["values.yaml"]', "values": '"string": "replicas: 3"'}
    value = values.get(name, '"string": "true"')
    return f'as {{"name": "{name}", {value}}}'


def _settings_of_application() -> Mapping[str, ApplicationSetting]:
    """The settings from the plugin's environment variables and parameters. Parameters override variables."""
    settings: dict[str, ApplicationSetting] = {}
    for variable, value in os.environ.items():
        if variable.startswith(_VARIABLE):
            option = variable.removeprefix(_VARIABLE).lower().replace("_", "-")
            settings[option] = ApplicationSetting(os.fsencode(value).decode(errors="replace"), variable)
        elif variable.startswith(_OF_APPLICATION):
            mistake = _USELESS.format(variable.removeprefix(_OF_APPLICATION))
            settings[variable] = ApplicationSetting("", variable, mistake)
    from twgen.model.problem import quoted
    from twgen.yaml.reader import read_documents

    text = os.environ.get(_PARAMETERS) or "null"
    try:
        # not with json.loads: it accepts lone surrogates, which cannot be printed
        parameters = (read_documents(os.fsencode(text)) or [None])[0] or []
    except InvalidInput as error:
        raise InvalidInput(f"{_PARAMETERS} is not JSON: {error}") from error
    such_as = _such_as("strict")
    if not isinstance(parameters, list):
        raise InvalidInput(f"{_PARAMETERS} is not a list of parameters such {such_as}")
    parameter_settings: dict[str, ApplicationSetting] = {}
    for parameter in parameters:
        name = parameter.get("name") if isinstance(parameter, dict) else None
        if not isinstance(name, str):
            raise InvalidInput(f"{_PARAMETERS} contains a parameter without a name: write it {such_as}")
        option, source, mistake = _option_name(name), f"plugin parameter {quoted(name)}", ""
        if option in parameter_settings:
            raise InvalidInput(f"{source} is set twice: remove one")
        match parameter:
            # Argo CD merges a parameter in .argocd-source.yaml into the application's, by name
            case {"string": str(value)} if not (parameter.keys() & {"array", "map"}):
                pass
            case {"name": "valueFiles", "array": [*files], **rest} if not rest and all(
                isinstance(file, str) for file in files
            ):
                value = "\n".join(files)
            case _:
                value, mistake = "", f"{source} must be a single text: write it {_such_as(name)}"
        parameter_settings[option] = ApplicationSetting(value, source, mistake)
    return settings | parameter_settings


def _option_name(parameter: str) -> str:
    """The name of the option that a parameter sets, such as `value-files` for `valueFiles`."""
    return re.sub("[A-Z]", lambda capital: f"-{capital[0].lower()}", parameter)
