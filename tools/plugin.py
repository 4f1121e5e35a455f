"""What tells Argo CD of the plugin, from the option table: written by `make documentation`."""

from twgen.cli.options import OPTIONS
from twgen.yaml.writer import write_documents


def plugin_text() -> str:
    """`plugin.yaml`: how Argo CD runs a render, and what an application may set for it.

    It has no discovery: an application that names no plugin would become a plain folder of YAML as soon as
    the sidecar is away, and lose what the folder does not hold. A version would be part of the plugin's name.
    """
    parameters = [
        {
            "name": option.name,
            "title": option.name.replace("-", " ").capitalize(),
            "tooltip": option.help,
            "itemType": "string" if option.type else "boolean",
        }
        for option in OPTIONS.values()
        if option.of_application
    ]
    plugin = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ConfigManagementPlugin",
        "metadata": {"name": "twgen"},
        "spec": {
            "generate": {"command": ["twgen", "render", ".", "-o", "json"]},
            "parameters": {"static": parameters},
        },
    }
    return "# Written by `make documentation` from the options of twgen.\n" + write_documents([plugin])
