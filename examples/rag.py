"""Retrieval for a question, and the prompt for a language model of your choice: `python examples/rag.py "QUESTION"`.

The service returns ids and scores, never text, so the texts stay here in a dictionary.
"""

import json
import os
import sys
from pathlib import Path

from maxsimd import Maxsimd, passage

PROMPT = """Answer the question from the passages alone. Name the passages that you used by their ids.
If they hold no answer, say so.

{passages}

Question: {question}"""

question = sys.argv[1] if len(sys.argv) > 1 else "How many days off do I get?"
lines = (Path(__file__).parent / "handbook.jsonl").read_text(encoding="utf-8").splitlines()
pages = [json.loads(line) for line in lines]
texts = {page["doc_id"]: page["text"] for page in pages}

url = os.environ.get("MAXSIMD_URL", "http://127.0.0.1:8080")
with Maxsimd(url, os.environ["MAXSIMD_API_KEY"]) as client:
    named = [index for index in client.list_indexes() if index.name == "handbook"]
    index = named[0] if named else client.create_index("handbook")
    # Documents that are sent again replace what was there under their ids.
    report = client.import_documents(index.id, pages)
    for failure in report.failed:
        print(failure.doc_id, failure.error, file=sys.stderr)
    results = client.search(index.id, question, top_k=3).results

found = [result for result in results if result.doc_id in texts]
passages = [f"[{result.doc_id}] {passage(texts[result.doc_id], result)}" for result in found]
print(PROMPT.format(passages="\n\n".join(passages), question=question))
