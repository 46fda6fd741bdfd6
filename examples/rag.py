"""Finds passages in a folder of Markdown: `python rag.py FOLDER "QUESTION"`. The service keeps no texts: they stay in the folder."""

import sys
from pathlib import Path

from maxsimd import Maxsimd, Result, highlights, passage

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "notes")
question = sys.argv[2] if len(sys.argv) > 2 else "Where do I begin?"
bold, yellow, plain = ("\033[1m", "\033[33m", "\033[0m") if sys.stdout.isatty() else ("", "", "")
texts = {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in folder.rglob("*.md")}


def marked(text: str, result: Result) -> str:
    """The passage, with the words that matched in colour."""
    at = result.text_range.start if result.text_range else 0
    end = at + len(passage(text, result))
    shown = ""
    for word in highlights(text, result):
        if word.similarity < 0.65:
            continue
        shown += text[at : word.start] + yellow + word.text + plain
        at = word.end
    return shown + text[at:end]


with Maxsimd() as client:  # It reads MAXSIMD_URL and MAXSIMD_API_KEY.
    name = folder.resolve().name
    index = client.create_index(name, if_exists="return")
    # A document that is sent again replaces the one with its id.
    documents = [{"doc_id": doc_id, "text": text} for doc_id, text in texts.items()]
    report = client.import_documents(index.id, documents)
    for failure in report.failed:
        print(failure.doc_id, failure.error, file=sys.stderr)

    for result in client.search(index.id, question, top_k=3, return_components=True).results:
        text = texts.get(result.doc_id)
        if text is not None:  # Otherwise the file is gone.
            print(f"{bold}{result.doc_id}{plain} {result.score:.2f}\n{marked(text, result)}\n")
