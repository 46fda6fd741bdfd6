"""One engine over a directory of embeddings (bench/search/embedding-directory.ts): builds its indexes once, then asks every
query at every setting and prints one JSON line for each setting.

    measure.py ENGINE EMBEDDINGS INDEXES ROUNDS THREADS CLOCK      (a clock is wall or processor)

An engine is a module `ENGINE_engine` with a function `indexes(embeddings, threads)`. It gives `Index` after `Index`.
"""

import importlib
import json
import shutil
import sys
import time
from pathlib import Path

from embeddings import Embeddings
from engine import Index, Setting


def built_once(index: Index, folder: Path) -> float:
    """Builds into an empty folder, unless an earlier run has built there. Returns the seconds that it took."""
    stamp = folder.with_suffix(".built.json")
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        started = time.perf_counter()
        index.build(folder)
        stamp.write_text(json.dumps(time.perf_counter() - started))
    return json.loads(stamp.read_text())


def bytes_of(folder: Path) -> int:
    """Bytes of all files, without the holes of files that an engine makes larger than what it writes."""
    files = [file.lstat() for file in folder.rglob("*") if file.is_file()]
    return sum(min(file.st_size, file.st_blocks * 512) for file in files)


def measured(setting: Setting, queries: list, rounds: int, clock) -> dict:
    """Times of all rounds but a first one, and the chunks that each query finds, best first."""
    found = [setting.search(query) for query in queries]
    milliseconds = []
    for query in queries * rounds:
        started = clock()
        setting.search(query)
        milliseconds.append((clock() - started) * 1000)
    return {"milliseconds": milliseconds, "found": found}


def main(engine: str, directory: str, folder: str, rounds: str, threads: str, clock: str) -> None:
    embeddings = Embeddings(directory)
    now = time.process_time if clock == "processor" else time.perf_counter
    for index in importlib.import_module(f"{engine}_engine").indexes(embeddings, int(threads)):
        place = Path(folder) / index.name
        built = built_once(index, place)
        for setting in index.settings(place):
            line = {
                "settings": setting.text,
                "buildSeconds": built,
                "diskBytes": bytes_of(place) + setting.more_bytes,
                **measured(setting, embeddings.queries, int(rounds), now),
            }
            print(json.dumps(line), flush=True)


main(*sys.argv[1:])
