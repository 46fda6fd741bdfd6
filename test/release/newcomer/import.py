"""A newcomer's import: makes an index and fills it from a JSONL file, with a progress bar.

`import.py FILE NAME [MODEL]` prints what became of it, as JSON.
"""

import json
import os
import sys

from maxsimd import ImportProgress, Maxsimd

file, name, *model = sys.argv[1:]
with open(file, encoding="utf-8") as lines:
    documents = [json.loads(line) for line in lines]


def show(progress: ImportProgress) -> None:
    done = progress.documents + progress.failed
    bar = "#" * (40 * done // len(documents))
    print(f"\r{name} [{bar:40}] {done}/{len(documents)}", end="", file=sys.stderr)


with Maxsimd(os.environ["MAXSIMD_URL"], os.environ["MAXSIMD_API_KEY"]) as client:
    index = client.create_index(name, model=model[0] if model else None)
    report = client.import_documents(index.id, documents, on_progress=show)
print(file=sys.stderr)
print(json.dumps({"index": str(index.id), "documents": report.documents, "failed": len(report.failed)}))
