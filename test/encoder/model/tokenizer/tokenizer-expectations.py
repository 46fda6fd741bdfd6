"""Writes tokenizer-expectations.json: what Hugging Face's `tokenizers` says about the default model's tokenizer.

`python tokenizer-expectations.py` (needs `tokenizers`). Special tokens are text (`encode_special_tokens`) and none are
added. `blocks` holds, for every 4096 code points of the planes in use, the head of a sha256 over the ids of "a" + code point + "b".
"""

import hashlib
import json
import random
from pathlib import Path

import tokenizers

HERE = Path(__file__).parent
TOKENIZER = HERE / "../../models/minilm-l6-maxsim/1/tokenizer.json"
BLOCK = 4096
# Planes 0 to 2, and the block of tags and variation selectors; the rest is unassigned or private.
STARTS = [*range(0, 0x30000, BLOCK), 0xE0000]
SEED = 7
FIXED = [
    "",
    "[MASK] [CLS] [SEP] [PAD] [UNK]",
    "x[MASK]y",
    "ΟΔΥΣΣΕΥΣ ΟΔΟΣ",
    "İstanbul ǅ ﬁ Straße",
    "naïve café résumé",
    "don't e-mail@example.com 3.14",
    "東京タワー",
    "a" * 100,
    "a" * 101,
    " \t\n\r ",
    "antidisestablishmentarianism",
    "1,234.56$",
    "👩‍👩‍👧 family",
    "##ing ##s",
]
RANGES = [
    (0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x400), (0x400, 0x500), (0x590, 0x700), (0x900, 0xA00),
    (0x2000, 0x2100), (0x3040, 0x3100), (0x4E00, 0x4F00), (0x1F600, 0x1F650), (0x20000, 0x20020), (0xAC00, 0xAC40),
    (0x1D400, 0x1D440),
]  # fmt: skip
ODD = [0x0, 0x9, 0xA, 0xD, 0x85, 0xFFFD, 0xFEFF, 0x200D, 0x1680, 0x2028, 0x3000]


def mixed_texts(count: int) -> list[str]:
    generator = random.Random(SEED)
    pools = [list(range(*bounds)) for bounds in RANGES] + [ODD]
    texts = []
    for _ in range(count):
        text = ""
        for _ in range(generator.randint(1, 24)):
            pool = generator.choice(pools) if generator.random() < 0.6 else pools[0]
            text += chr(generator.choice(pool)) + (" " if generator.random() < 0.15 else "")
        texts.append(text)
    return texts


def main() -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    tokenizer.encode_special_tokens = True

    def ids(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    blocks = []
    for start in STARTS:
        digest = hashlib.sha256()
        for code in range(start, start + BLOCK):
            if not 0xD800 <= code < 0xE000:
                digest.update((",".join(map(str, ids("a" + chr(code) + "b"))) + "\n").encode())
        blocks.append([start, digest.hexdigest()[:16]])
    expectations = {
        "source": f"tokenizers {tokenizers.__version__}",
        "blocks": blocks,
        "texts": [[text, ids(text)] for text in FIXED + mixed_texts(400)],
    }
    (HERE / "tokenizer-expectations.json").write_text(json.dumps(expectations, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
