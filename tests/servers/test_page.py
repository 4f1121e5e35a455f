"""The page in a browser: of a real cluster, of a file, of a thousand workers."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import alert_is_present
from selenium.webdriver.support.wait import WebDriverWait
from urllib3 import request

from testing.browser import Appearance, browser, set_appearance
from testing.kubernetes.cluster import DEFAULT_CONTEXTS, Cluster
from testing.processes import eventually
from tests.servers.live import ENVIRONMENT, TWGEN
from tests.strategies import NOW
from twgen.model.plan import Phase
from twgen.model.rollout import Request, Verb
from twgen.model.shapes import Findings
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import STATUS, parse_pending, write_rollout_status
from twgen.reporting.page.pages import fleet_page
from twgen.versioning.names import rollout_labels, rollout_status_name

pytestmark = pytest.mark.server
EXAMPLE = Path(__file__).parents[2] / "examples" / "three-versions"
SETTLED = RolloutStatus("shop/a", Phase.SETTLED, "Settled", "it is current", "v2", "v2", 100, NOW, None)
LOOKS = [Appearance(width, theme) for width in (400, 1600) for theme in ("light", "dark")]


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with browser() as driver:
        yield driver


def opened(driver: Chrome, page: str, folder: Path) -> None:
    (file := folder / "page.html").write_text(page)
    driver.get(file.as_uri())


def shown(driver: Chrome) -> list[str]:
    """The workers that can be seen."""
    found = driver.find_elements(By.CSS_SELECTOR, ".worker")
    return [str(one.get_attribute("id")) for one in found if one.is_displayed()]


def problems(driver: Chrome) -> list[Any]:
    """What the browser complains of, such as what the page may not load."""
    return [entry["message"] for entry in driver.get_log("browser")]


@pytest.mark.parametrize("how", LOOKS, ids=str)
@pytest.mark.parametrize("command", ["status", "simulate"])
def test_file_is_readable_at_each_width_and_in_both_themes(
    driver: Chrome, command: str, how: Appearance, tmp_path: Path
) -> None:
    world = ["--snapshot", "snapshot.yaml"] if command == "status" else []
    ended = subprocess.run(
        [TWGEN, command, ".", "-o", "html", *world], cwd=EXAMPLE, capture_output=True, check=True, text=True
    )
    set_appearance(driver, how)
    opened(driver, ended.stdout, tmp_path)
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    # nothing but what scrolls in itself is wider than the window
    assert driver.execute_script("return document.documentElement.scrollWidth") <= how.width
    paper, ink = driver.execute_script(
        "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    )
    assert contrast(paper, ink) > 7
    for selector in (".phase", "td.current", "td.ramping", "td.draining", ".faint"):
        for one in driver.find_elements(By.CSS_SELECTOR, selector):
            colours = [one.value_of_css_property(name) for name in ("background-color", "color")]
            assert contrast(*colours) > 4.5, (selector, colours)
    assert problems(driver) == []


def contrast(*colours: str) -> float:
    """How well one is read on the other (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio)."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    darker, lighter = sorted(map(luminance, colours))
    return (lighter + 0.05) / (darker + 0.05)


def test_worker_is_found_opened_and_left_by_the_keyboard_alone(driver: Chrome, tmp_path: Path) -> None:
    set_appearance(driver, Appearance(1600, "light"))
    others = [replace(SETTLED, worker=f"shop/{name}") for name in ("pay", "mail", "bill")]
    opened(driver, fleet_page(others, NOW), tmp_path)
    assert shown(driver) == ["shop/bill", "shop/mail", "shop/pay"]
    body = driver.find_element(By.TAG_NAME, "body")
    body.send_keys("/")
    driver.switch_to.active_element.send_keys("PAY settled")
    assert shown(driver) == ["shop/pay"]
    assert driver.find_element(By.ID, "found").text == "1 of 3"
    # behind the meaning of the columns
    for _ in range(2):
        driver.switch_to.active_element.send_keys(Keys.TAB)
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert driver.find_element(By.ID, "shop/pay").get_attribute("open") is not None
    driver.find_element(By.ID, "filter").send_keys(Keys.ESCAPE)
    assert len(shown(driver)) == 3


def is_open(driver: Chrome, selector: str) -> bool:
    return bool(driver.execute_script("return document.querySelector(arguments[0]).open", selector))


def test_settled_workers_are_folded_until_the_filter_or_the_url_names_one(
    driver: Chrome, tmp_path: Path
) -> None:
    many = [replace(SETTLED, worker=f"shop/worker-{number}") for number in range(250)]
    set_appearance(driver, Appearance(1600, "light"))
    opened(driver, fleet_page(many, NOW), tmp_path)
    assert shown(driver) == []
    field = driver.find_element(By.ID, "filter")
    field.send_keys("worker-77")
    assert shown(driver) == ["shop/worker-77"]
    field.send_keys(Keys.ESCAPE)
    assert not is_open(driver, ".fold")
    driver.execute_script("location.hash = '#shop/worker-78'")
    eventually(lambda: is_open(driver, "[id='shop/worker-78']"))
    assert is_open(driver, ".fold")
    assert problems(driver) == []


def test_command_is_selected_if_there_is_no_clipboard_and_its_row_stays_closed(
    driver: Chrome, tmp_path: Path
) -> None:
    failed = {"phase": Phase.BLOCKED, "reason": "GateFailed", "permits": (Verb.RETRY,)}
    set_appearance(driver, Appearance(1600, "light"))
    status = replace(SETTLED, resource_version="7", **failed)  # type: ignore[arg-type]
    opened(driver, fleet_page([status, replace(SETTLED, worker="shop/b")], NOW), tmp_path)
    driver.execute_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    driver.find_element(By.CSS_SELECTOR, "button.copy").click()
    selected = "return getSelection().toString()"
    eventually(lambda: driver.execute_script(selected) == "twgen retry worker/a -n shop")
    assert not is_open(driver, ".worker")
    assert problems(driver) == []


def test_thousand_workers_are_shown_and_filtered_within_seconds(driver: Chrome, tmp_path: Path) -> None:
    ended = subprocess.run(
        [TWGEN, "status", ".", "-o", "json", "--snapshot", "snapshot.yaml"],
        cwd=EXAMPLE,
        capture_output=True,
        check=True,
        text=True,
    )
    report = STATUS.read(json.loads(ended.stdout), None, Findings())
    many = [replace(SETTLED, worker=f"shop/worker-{number}", report=report) for number in range(1000)]
    set_appearance(driver, Appearance(1600, "light"))
    timing = "const [one] = performance.getEntriesByType('navigation'); return one.loadEventEnd"

    def seconds() -> tuple[float, float]:
        """What rendering takes of a processor, and until the browser has loaded it."""
        began = time.process_time()
        page = fleet_page(many, NOW)
        rendered = time.process_time() - began
        opened(driver, page, tmp_path)
        return rendered, float(eventually(lambda: driver.execute_script(timing))) / 1000

    def is_quick() -> bool:
        rendered, loaded = seconds()
        assert (rendered < 2, loaded < 3) == (True, True), (rendered, loaded)
        return True

    # other tests have the machine too; a quiet one renders the page in half a second, and loads it in a third
    eventually(is_quick)
    filtered = driver.execute_script(
        "const began = performance.now(); const input = document.getElementById('filter');"
        "input.value = 'worker-77'; input.dispatchEvent(new Event('input'));"
        "document.body.getBoundingClientRect(); return performance.now() - began"
    )
    assert len(shown(driver)) == 11
    assert filtered < 1000, filtered


def record(cluster: Cluster, namespace: str, status: RolloutStatus) -> None:
    name = status.worker.partition("/")[2]
    metadata = {"name": rollout_status_name(name), "namespace": namespace, "labels": rollout_labels(name)}
    data = write_rollout_status(status)
    cluster.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}])


def open_worker(driver: Chrome) -> None:
    """Open the first worker; in one piece, as a refresh may replace the element in between."""
    driver.execute_script("document.querySelector('.worker').open = true")


def says(driver: Chrome) -> str:
    """What the first worker says; asked in one piece, as a refresh may replace the element in between."""
    return str(driver.execute_script("return document.querySelector('.says').textContent"))


def test_dashboard_shows_a_cluster_as_it_changes_and_to_nobody_else(
    driver: Chrome, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    # nobody rolls it out, so that it is what it says
    status = replace(SETTLED, worker=f"{namespace}/pay", message="as it was", since=NOW - timedelta(hours=1))
    record(cluster, namespace, status)
    command = [TWGEN, "dashboard", "-n", namespace, "--interval", "1s"]
    access = ["--kubeconfig", cluster.kubeconfig]
    started, started_with = tmp_path / "browser", tmp_path / "arguments"
    started.write_text(f'#!/bin/sh\necho "$@" > {started_with}.new; mv {started_with}.new {started_with}\n')
    started.chmod(0o700)
    environment = {**ENVIRONMENT, "BROWSER": f"{started} %s"}
    set_appearance(driver, Appearance(1600, "light"))
    with subprocess.Popen([*command, *access], stdout=subprocess.PIPE, text=True, env=environment) as served:
        try:
            assert served.stdout
            url = served.stdout.readline().strip()
            eventually(started_with.exists)
            # everyone on the machine can read arguments, and nobody else this file
            path = Path((opened := started_with.read_text().strip()).removeprefix("file://"))
            assert (url.partition("token=")[2] in opened, path.parent.stat().st_mode & 0o77) == (False, 0)
            driver.get(opened)
            eventually(lambda: driver.current_url == url)
            assert "as it was" in says(driver)
            assert driver.title == f"Temporal workers of {DEFAULT_CONTEXTS[0]}"
            open_worker(driver)
            record(cluster, namespace, replace(status, message="as it is"))
            eventually(lambda: "as it is" in says(driver))
            assert driver.execute_script("return document.querySelector('.worker').open") is True
            # what somebody has selected, to copy it, stays until it is selected no more
            select = "getSelection().selectAllChildren(document.querySelector('.says'))"
            driver.execute_script(select)
            record(cluster, namespace, replace(status, message="as it will be"))
            part = {"Accept": "application/json"}
            eventually(lambda: b"as it will be" in request("GET", url, headers=part, retries=False).data)
            time.sleep(2.5)  # two refreshes that have to leave it alone
            assert driver.execute_script("return getSelection().toString()") == "Settled: as it is"
            driver.execute_script("getSelection().removeAllRanges()")
            eventually(lambda: "as it will be" in says(driver))
            assert problems(driver) == []
            address, _, token = url.partition("?token=")
            assert address.startswith("http://127.0.0.1:")
            for asked, headers in (
                (address, {}),
                (f"{address}?token={token[:-1]}", {}),
                (url, {"Host": "evil.example"}),
                (url, {"Origin": "http://evil.example"}),
            ):
                assert request("GET", asked, headers=headers, retries=False).status == 403, (asked, headers)
            assert request("PUT", url, retries=False).status == 405
            answer = request("GET", url, retries=False)
            assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
        finally:
            served.terminate()
    assert not path.parent.exists()


@contextmanager
def dashboard(driver: Chrome, namespace: str, kubeconfig: Path) -> Iterator[str]:
    """Serve the page of a namespace with this kubeconfig, and open it; its URL."""
    command = [
        TWGEN,
        "dashboard",
        "-n",
        namespace,
        "--no-browser",
        "--interval",
        "1s",
        "--kubeconfig",
        kubeconfig,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as served:
        try:
            assert served.stdout
            url = served.stdout.readline().strip()
            # what an earlier page complained of is not this one's
            driver.get("about:blank")
            problems(driver)
            driver.get(url)
            yield url
        finally:
            served.terminate()


def with_job(cluster: Cluster, namespace: str) -> None:
    """A Job that works on the rollout, without pods."""
    template = {
        "metadata": {"labels": rollout_labels("pay")},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "rollout", "image": "twgen"}]},
    }
    metadata = {"name": "pay-rollout", "namespace": namespace, "labels": rollout_labels("pay")}
    spec = {"suspend": True, "template": template}
    cluster.apply([{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}])


def buttons(driver: Chrome) -> list[str]:
    texts = "return [...document.querySelectorAll('.buttons button')].map((one) => one.innerText)"
    return list(driver.execute_script(texts))


def test_button_requests_what_it_says_and_no_other_site_can_press_it(
    driver: Chrome, cluster: Cluster, namespace: str
) -> None:
    status = replace(
        SETTLED,
        worker=f"{namespace}/pay",
        phase=Phase.WAITING,
        reason="RampPaused",
        percentage=25,
        target="v3",
    )
    record(cluster, namespace, status)
    with_job(cluster, namespace)
    path = f"/api/v1/namespaces/{namespace}/configmaps/{rollout_status_name('pay')}"
    set_appearance(driver, Appearance(1600, "light"))
    with dashboard(driver, namespace, cluster.kubeconfig) as url:
        open_worker(driver)
        eventually(lambda: buttons(driver) == ["Pause", "Abort"])
        origin = url.partition("/?")[0]
        press = {"worker": status.worker, "verb": "Abort", "target": "v3"}
        for headers, body, code in (
            ({}, press, 403),
            ({"Origin": "http://evil.example"}, press, 403),
            ({"Origin": "null"}, press, 403),
            ({"Origin": origin, "Content-Type": "text/plain"}, press, 415),
            ({"Origin": origin}, {"worker": status.worker}, 400),
            ({"Origin": origin}, {**press, "target": "v2"}, 409),
            ({"Origin": origin}, {**press, "verb": "Promote"}, 409),
            ({"Origin": origin}, {**press, "worker": "kube-system/dns"}, 409),
        ):
            sent = {"Content-Type": "application/json", **headers}
            answer = request("POST", url, body=json.dumps(body), headers=sent, retries=False)
            assert answer.status == code, (headers, body, answer.data)
        assert parse_pending(cluster.api.get(path)) == ()
        driver.execute_script("setTimeout(() => document.querySelector('button[data-verb=Abort]').click())")
        question = WebDriverWait(driver, 60).until(alert_is_present())
        assert question.text.startswith(f"Abort {status.worker}: end the ramp of v3")
        question.accept()

        def requested() -> Request | None:
            return next((each.request for each in parse_pending(cluster.api.get(path))), None)

        found = eventually(requested)
        assert found
        assert (found.verb, found.target) == (Verb.ABORT, "v3")
        eventually(lambda: "requested Abort of" in driver.find_element(By.ID, "answered").text)
        eventually(lambda: "its rollout usually answers within seconds" in says(driver))
        assert buttons(driver) == ["Abort"]
        assert problems(driver) == []


def test_account_that_may_not_patch_the_status_has_no_buttons(
    driver: Chrome, cluster: Cluster, namespace: str
) -> None:
    status = replace(
        SETTLED, worker=f"{namespace}/pay", phase=Phase.WAITING, reason="RampPaused", target="v3"
    )
    record(cluster, namespace, status)
    with_job(cluster, namespace)
    metadata = {"name": "reader", "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    more = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]}
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    reference = {"apiGroup": rbac, "kind": "Role", "name": "reader"}
    cluster.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
            {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [rule, more]},
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "subjects": [subject],
                "roleRef": reference,
            },
        ]
    )
    cluster.await_rights("reader", namespace, rule)
    kubeconfig = cluster.write_kubeconfig(f"{namespace}-reader", cluster.token("reader", namespace))
    with dashboard(driver, namespace, kubeconfig) as url:
        time.sleep(2.5)  # two refreshes, after which there would be buttons
        assert buttons(driver) == []
        press = json.dumps({"worker": status.worker, "verb": "Abort", "target": "v3"})
        headers = {"Content-Type": "application/json", "Origin": url.partition("/?")[0]}
        answer = request("POST", url, body=press, headers=headers, retries=False)
        assert answer.status == 409, answer.data
