"""`render.py CHART VALUES.json`: lints a chart of Helm as `helm lint --strict` would, with each of a list of values, and prints what
it renders, as a list of templates by name."""

import json
import sys

import helm_python as helm

chart, values_file = sys.argv[1:]
with open(values_file, encoding="utf-8") as file:
    variants = json.load(file)
with helm.Chart.load(chart) as loaded:
    for values in variants:
        findings = [each for each in helm.lint(chart, values, strict=True)["messages"] if each["severity"] > 1]
        if findings:
            sys.exit(json.dumps(findings))
    rendered = [loaded.render(values, name="release", namespace="default") for values in variants]
print(json.dumps(rendered))
