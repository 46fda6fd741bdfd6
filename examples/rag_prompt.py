"""Imports a folder of Markdown with its texts, and prints a prompt for a language model: `python rag_prompt.py FOLDER "QUESTION"`."""

import sys
from pathlib import Path

from maxsimd import Maxsimd

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "notes")
question = sys.argv[2] if len(sys.argv) > 2 else "Where do I begin?"
documents = [
    {"doc_id": str(file.relative_to(folder)), "text": file.read_text(encoding="utf-8")} for file in folder.rglob("*.md")
]
with Maxsimd() as client:  # It reads MAXSIMD_URL and MAXSIMD_API_KEY.
    name = folder.resolve().name
    index = client.create_index(name, if_exists="return")
    report = client.import_documents(index.id, documents, keep_text="text", cut=True)
    for failure in report.failed:
        print(failure.doc_id, failure.error, file=sys.stderr)
    ranked = client.search(index.id, question, top_k=5, passage={"from": "text", "context": 200}, fields=[])

sources = [f"[{result.doc_id}]\n{result.passage.text.strip()}" for result in ranked.results if result.passage]
task = "Answer from these sources alone. Name those that you used. Say so if they hold no answer."
print(task, *sources, f"Question: {question}", sep="\n\n")
