"""The specs of the page are valid, and render to the objects that it names."""

import json
import re
from pathlib import Path

from testing.forking import forker
from testing.processes import ENVIRONMENT
from tests.cases.story import STORIES
from tests.docs.pages import EXAMPLE, blocks
from twgen.yaml.reader import read_documents

PAGE = Path(__file__).parents[2] / "docs" / "first-application.md"


def test_specs_of_the_page_render_to_the_objects_that_it_names(tmp_path: Path) -> None:
    [specs] = [text for text in blocks(PAGE, "yaml") if "kind: WorkerDeployment" in text]
    (tmp_path / "worker.yaml").write_text(specs)
    ended = forker().run(["validate", ".", "-n", "shop", "--strict"], tmp_path, ENVIRONMENT)
    assert ended.stdout + ended.stderr == "checked 1 file: 1 worker, 1 connection; no problems\n"
    assert "You should now see `no problems`" in PAGE.read_text()
    variables = {
        **ENVIRONMENT,
        "ARGOCD_APP_NAME": "payments",
        "ARGOCD_APP_PROJECT_NAME": "payments",
        "ARGOCD_APP_NAMESPACE": "shop",
        "ARGOCD_APP_PARAMETERS": json.dumps([{"name": "strict", "string": "true"}]),
        "TWGEN_OPERATOR_CONFIG": str(EXAMPLE / "operator.yaml"),
        "TWGEN_IDENTITY": "twgen/prod-eu/payments",
    }
    snapshot = str(STORIES / "first-deploy" / "snapshot.yaml")
    ended = forker().run(["render", ".", "--snapshot", snapshot], tmp_path, variables)
    assert ended.returncode == 0, ended.stderr
    rendered = {item["kind"]: item["metadata"] for item in read_documents(ended.stdout)}
    assert re.fullmatch(r"payments-v1-0-0-\w+", rendered["Deployment"]["name"])
    assert rendered["ConfigMap"]["name"] == "payments-rollout"
    assert "argocd.argoproj.io/hook" not in rendered["Job"]["annotations"], "the page shows a tracked Job"
