"""The table of docs/candidates.md out of what main.py saved.

python table.py REPORT.json...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from recall import KEPT, TOPS


def main() -> None:
    kept = " | ".join(f"in {count}" for count in KEPT)
    print(f"| candidates | {kept} | ms | bytes a chunk |\n|---|{'---|' * len(KEPT)}---|---|")
    for file in sys.argv[1:]:
        for row in json.loads(Path(file).read_text())["rows"]:
            shares = [[row.get(f"top-{top} in {count}") for top in TOPS] for count in KEPT]
            if None in shares[0]:
                continue
            cells = " | ".join(" / ".join(f"{share:.3f}".lstrip("0") for share in pair) for pair in shares)
            print(f"| {row['candidates']} | {cells} | {row.get('ms', '')} | {row['bytes_per_chunk']} |")


if __name__ == "__main__":
    main()
