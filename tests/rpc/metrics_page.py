#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page of metrics beside its documentation, and before Prometheus' own reader.

usage: metrics_page.py METRICS_TEXT_TEST DOCS [--promtool]

Each metric of a server and of a client has a row in DOCS with its type, and each row is a metric. With
--promtool, promtool checks the page, too.
"""
import re
import shutil
import subprocess
import sys

SKIPPED = 77
ROW = re.compile(r"\| `((?:grpc|bowline)_(?:server|client)_\w+)` \| (counter|gauge|histogram) \|")
TYPE = re.compile(r"# TYPE (\w+) (\w+)$", re.MULTILINE)


def page(program, side):
    return subprocess.run([program, "native", side], check=True, stdout=subprocess.PIPE).stdout.decode()


def families(text):
    return {re.sub(r"_total$", "", name) if kind == "counter" else name: kind
            for name, kind in TYPE.findall(text)}


def check_docs(texts, docs):
    found = {name: kind for text in texts for name, kind in families(text).items()}
    with open(docs, encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    said = dict(rows)
    wrong = [f"{docs}: no row for {name}, a {kind}" for name, kind in found.items()
             if said.get(name) != kind]
    wrong += [f"{docs}: there is no {kind} {name}" for name, kind in rows if found.get(name) != kind]
    for line in sorted(wrong):
        print(line)
    return not wrong and len(rows) == len(found)


def check_promtool(texts):
    results = [subprocess.run(["promtool", "check", "metrics"], input=text.encode(), check=False)
               for text in texts + ["".join(texts)]]
    return all(result.returncode == 0 for result in results)


def main():
    program, docs = sys.argv[1:3]
    texts = [page(program, "server"), page(program, "client")]
    if "--promtool" in sys.argv:
        if not shutil.which("promtool"):
            print("SKIPPED: the page is not checked by Prometheus' reader: apt-get install prometheus")
            return SKIPPED
        good = check_promtool(texts)
    else:
        good = check_docs(texts, docs)
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
