"""`render.py CHART VALUES.json`: lints a chart of Helm as `helm lint --strict` would and prints its notes, then what it renders."""

import json
import sys

import helm_python as helm

chart, values_file = sys.argv[1:]
with open(values_file, encoding="utf-8") as file:
    values = json.load(file)
findings = [each for each in helm.lint(chart, values, strict=True)["messages"] if each["severity"] > 1]
if findings:
    sys.exit(json.dumps(findings))
with helm.Chart.load(chart) as loaded:
    rendered = loaded.render(values, name="release", namespace="default")
notes = rendered.pop(next(name for name in rendered if name.endswith("NOTES.txt")))
print(json.dumps(notes), *(text for _, text in sorted(rendered.items())), sep="\n---\n")
