#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What test_automation.c asks about the files in scripts/: problems go to stderr, with exit 1.

automation.py unit FILE NAME [VARIABLE=VALUE...]   the words of ExecStart= without the program, one a line, as systemd expands them
automation.py capabilities FILE                    CapabilityBoundingSet= as setpriv(1) takes it
automation.py calls FILE TRACE                     system calls in strace's output that SystemCallFilter= does not let through
automation.py dashboard FILE                       checks a dashboard; prints its expressions as a file of recording rules
automation.py manifests SCHEMA FILE...             checks each document
automation.py container FILE NAME                  the command of a container without the program, one word a line
"""
import json
import re
import shlex
import subprocess
import sys


def settings(path):
    """(key, value) of a unit file, lines that go on joined."""
    text = re.sub(r"\\\n", " ", open(path).read())
    lines = [line for line in text.splitlines() if line and line[0] not in "#;["]
    return [tuple(part.strip() for part in line.split("=", 1)) for line in lines]


def values(path, key):
    """Of a setting that adds up; an empty one forgets what stood before."""
    out = []
    for k, v in settings(path):
        if k == key:
            out = out + [v] if v else []
    return out


def unit(path, name, *overrides):
    def specifiers(s):
        return s.replace("%i", name).replace("%%", "%")

    env = dict(word.split("=", 1) for v in values(path, "Environment") for word in shlex.split(specifiers(v)))
    env.update(o.split("=", 1) for o in overrides)
    words = []
    for word in shlex.split(specifiers(values(path, "ExecStart")[0]))[1:]:
        alone = re.fullmatch(r"\$([A-Z_]+)", word)
        if alone:  # systemd.service(5): split into words, quotes respected
            words += shlex.split(env[alone[1]])
        else:
            words.append(re.sub(r"\$\{([A-Z_]+)\}", lambda m: env[m[1]], word))
    print("\n".join(words))


def capabilities(path):
    names = " ".join(values(path, "CapabilityBoundingSet")).split()
    print(",".join(["-all"] + ["+" + n.removeprefix("CAP_").lower() for n in names]))


def expand(name):
    if not name.startswith("@"):
        return {name}
    said = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True).stdout
    inner = [line.strip() for line in said.splitlines()[1:]]
    return set().union(*(expand(n) for n in inner if n and not n.startswith("#")))


def calls(path, trace):
    # @default is let through whatever the list says (systemd.exec(5))
    allowed = expand("@default").union(*(expand(n) for v in values(path, "SystemCallFilter") for n in v.split()))
    used = set(re.findall(r"^\d+ +([a-z0-9_]+)\(", open(trace).read(), re.M))
    if len(used) < 10:
        sys.exit("strace has seen no more than %s" % sorted(used))
    if used - allowed:
        sys.exit("not let through: %s" % " ".join(sorted(used - allowed)))


def overlap(a, b):
    return a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]


def dashboard(path):
    board = json.load(open(path))
    panels = board["panels"]
    wrong = []
    if board["schemaVersion"] < 36:
        wrong.append("schemaVersion is older than Grafana 9")
    if board["templating"]["list"][0]["type"] != "datasource":
        wrong.append("the first variable is no data source")
    if len({p["id"] for p in panels}) != len(panels):
        wrong.append("two panels have the same id")
    for i, p in enumerate(panels):
        if p["gridPos"]["x"] + p["gridPos"]["w"] > 24:
            wrong.append("%s is wider than the dashboard" % p["title"])
        wrong += ["%s lies over %s" % (p["title"], q["title"]) for q in panels[:i] if overlap(p["gridPos"], q["gridPos"])]
        if not p["fieldConfig"]["defaults"].get("unit"):
            wrong.append("%s has no unit" % p["title"])
        if not p["targets"]:
            wrong.append("%s shows nothing" % p["title"])
        for source in [p] + p["targets"]:
            if source["datasource"] != {"type": "prometheus", "uid": "${datasource}"}:
                wrong.append("%s does not follow the variable of the data source" % p["title"])
    if wrong:
        sys.exit("\n".join(wrong))
    exprs = [t["expr"].replace("$__rate_interval", "5m") for p in panels for t in p["targets"]]
    rules = [{"record": "checked:expr:%d" % i, "expr": e} for i, e in enumerate(exprs)]
    print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))


def documents(path):
    import yaml

    return [d for d in yaml.safe_load_all(open(path)) if d is not None]


def manifests(schema, *paths):
    import jsonschema

    check = jsonschema.Draft202012Validator(json.load(open(schema)))
    wrong = []
    for path in paths:
        found = documents(path)
        if not found:
            wrong.append("%s is empty" % path)
        for d in found:
            wrong += ["%s: %s: %s" % (path, e.json_path, e.message) for e in check.iter_errors(d)]
            names = {v["name"] for v in pod(d).get("volumes", [])}
            used = {m["name"] for c in pod(d).get("containers", []) for m in c.get("volumeMounts", [])}
            if names != used:
                wrong.append("%s: volumes %s, mounted %s" % (path, sorted(names), sorted(used)))
    if wrong:
        sys.exit("\n".join(wrong))


def pod(document):
    return document.get("spec", {}).get("template", {}).get("spec", {})


def container(path, name):
    for d in documents(path):
        for c in pod(d).get("containers", []):
            if c["name"] == name:
                print("\n".join(c["command"][1:] + c.get("args", [])))


if __name__ == "__main__":
    what = {f.__name__: f for f in (unit, capabilities, calls, dashboard, manifests, container)}
    what[sys.argv[1]](*sys.argv[2:])
