#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The dashboard and the alerts beside the metrics that there are, or before Prometheus' own reader.

usage: metrics_watch.py METRICS_TEXT_TEST DASHBOARD ALERTS ALERTS_TEST OPERATING [--promtool]

Each metric that DASHBOARD or ALERTS names is one that a server or a client shows, by the suffix that its
type has; each alert has a case in ALERTS_TEST and a row in OPERATING. With --promtool it is promtool that
reads the rules and the dashboard's expressions, and evaluates the cases.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile

from metrics_page import SKIPPED, TYPE, page

NAME = re.compile(r"\b(?:grpc|bowline)_(?:server|client)_\w+")
ALERT = re.compile(r"- alert: (\w+)")
SUFFIXES = {"counter": [""], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def samples(program):
    """What a page has: of counters "# TYPE" has the sample's name already."""
    text = page(program, "server") + page(program, "client")
    return {name + suffix for name, kind in TYPE.findall(text) for suffix in SUFFIXES[kind]}


def expressions(dashboard):
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def check_names(known, path, text):
    return [f"{path}: there is no sample {name}" for name in sorted(set(NAME.findall(text)) - known)]


def check_alerts(alerts, tests, operating):
    wrong = []
    for name in ALERT.findall(alerts):
        if not re.search(rf"alertname: {name}\n\s+exp_alerts:\n", tests):
            wrong.append(f"{name} never fires in the tests of alerts")
        if f"`{name}`" not in operating:
            wrong.append(f"{name} has no row in docs/operating.md")
    return wrong


def check_dashboard(path, dashboard):
    ids = [panel["id"] for panel in dashboard["panels"]]
    wrong = [] if len(ids) == len(set(ids)) else [f"{path}: two panels have one id"]
    known = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval"}
    for expression in expressions(dashboard):
        wrong += [f"{path}: there is no variable ${name}"
                  for name in re.findall(r"\$(\w+)", expression) if name not in known]
    return wrong


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
    return done.returncode == 0


def as_rules(dashboard):
    """JSON is YAML."""
    rules = [{"record": f"panel:{i}", "expr": re.sub(r"\$__rate_interval", "5m", expression)}
             for i, expression in enumerate(expressions(dashboard))]
    return json.dumps({"groups": [{"name": "dashboard", "rules": rules}]})


def check_by_promtool(dashboard, alerts, tests):
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write(as_rules(dashboard))
        file.flush()
        return all([promtool("check", "rules", file.name), promtool("check", "rules", alerts),
                    promtool("test", "rules", tests)])


def main():
    program, dashboard_path, alerts_path, tests_path, operating = sys.argv[1:6]
    dashboard = json.loads(read(dashboard_path))
    if "--promtool" in sys.argv:
        if not shutil.which("promtool"):
            print("SKIPPED: rules are not read by Prometheus: apt-get install prometheus")
            return SKIPPED
        good = check_by_promtool(dashboard, alerts_path, tests_path)
        print("1 passed, 0 failed" if good else "0 passed, 1 failed")
        return 0 if good else 1
    known = samples(program)
    alerts = read(alerts_path)
    wrong = check_names(known, dashboard_path, json.dumps(dashboard))
    wrong += check_names(known, alerts_path, alerts)
    wrong += check_names(known, tests_path, read(tests_path))
    wrong += check_alerts(alerts, read(tests_path), read(operating))
    wrong += check_dashboard(dashboard_path, dashboard)
    for line in wrong:
        print(line)
    print(f"{int(not wrong)} passed, {int(bool(wrong))} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
