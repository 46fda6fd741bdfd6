"""One engine over a directory of embeddings (bench/search/embedding-directory.ts).

    measure.py ENGINE EMBEDDINGS INDEXES                          builds its indexes, unless an earlier run has
    measure.py ENGINE EMBEDDINGS INDEXES ROUNDS THREADS CLOCK     measures them (a clock is wall or processor)

It asks every query at every setting and prints one JSON line for each setting. An engine is a module `ENGINE_engine` with a
function `indexes(embeddings)` that gives `Index` after `Index`.
"""

import importlib
import json
import shutil
import sys
import time
from pathlib import Path

from embeddings import Embeddings, write_whole
from engine import Index, Setting


def stamp_of(folder: Path) -> Path:
    """The file that holds the seconds of a build that ended."""
    return folder.with_suffix(".built.json")


def build_once(index: Index, folder: Path) -> None:
    """Builds into an empty folder, unless an earlier run has built there."""
    if not stamp_of(folder).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        started = time.perf_counter()
        index.build(folder)
        write_whole(stamp_of(folder), json.dumps(time.perf_counter() - started))


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


def measure(index: Index, folder: Path, embeddings: Embeddings, rounds: str, threads: str, clock: str) -> None:
    now = time.process_time if clock == "processor" else time.perf_counter
    for setting in index.settings(folder, int(threads)):
        line = {
            "settings": setting.text,
            "buildSeconds": json.loads(stamp_of(folder).read_text()),
            "diskBytes": bytes_of(folder) + setting.more_bytes,
            **measured(setting, embeddings.queries, int(rounds), now),
        }
        print(json.dumps(line), flush=True)


def main(engine: str, directory: str, indexes: str, *asked: str) -> None:
    embeddings = Embeddings(directory)
    for index in importlib.import_module(f"{engine}_engine").indexes(embeddings):
        folder = Path(indexes) / index.name
        if asked:
            measure(index, folder, embeddings, *asked)
        else:
            build_once(index, folder)


main(*sys.argv[1:])
