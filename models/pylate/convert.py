"""Exports a checkpoint as PyLate saves it: see `models/convert.sh`. Every key has the value of the checkpoint."""

import json
import sys
from pathlib import Path

from pylate import models
from torch import nn
from transformers.utils import cached_file

from onnx_export import EAGER, TokenVectors, within_positions, write_export


class UnitLength(nn.Module):
    """As PyLate does in `encode`."""

    def forward(self, features: dict) -> dict:
        return {"token_embeddings": nn.functional.normalize(features["token_embeddings"], p=2, dim=-1)}


def refuse_others(checkpoint: str) -> None:
    file = cached_file(checkpoint, "config_sentence_transformers.json", _raise_exceptions_for_missing_entries=False)
    if file is not None and json.loads(Path(file).read_text()).get("model_type") == "MultiVectorEncoder":
        sys.exit(f"{checkpoint} was saved by sentence-transformers: download it, and give its directory")


def convert(checkpoint: str, out: Path) -> None:
    colbert = models.ColBERT(checkpoint, device="cpu", model_kwargs=EAGER)
    backbone = colbert[0].auto_model
    query_length = colbert.query_length
    write_export(out, TokenVectors(backbone, [*list(colbert)[1:], UnitLength()]), colbert.tokenizer, {
        "model_name": checkpoint,
        "query_prefix": colbert.query_prefix,
        "document_prefix": colbert.document_prefix,
        "query_prefix_id": colbert.query_prefix_id,
        "document_prefix_id": colbert.document_prefix_id,
        "query_length": query_length if colbert.do_query_expansion else within_positions(query_length, backbone, "query_length"),
        "document_length": within_positions(colbert.document_length, backbone, "document_length"),
        "do_query_expansion": bool(colbert.do_query_expansion),
        "attend_to_expansion_tokens": bool(colbert.attend_to_expansion_tokens),
        # PyLate expands queries with the padding token.
        "mask_token_id": colbert.tokenizer.pad_token_id,
        "skiplist_words": colbert.skiplist_words,
        "do_lower_case": bool(getattr(colbert[0], "do_lower_case", False)),
    })


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: convert.sh CHECKPOINT DIRECTORY")
    refuse_others(sys.argv[1])
    convert(sys.argv[1], Path(sys.argv[2]))
    print(f"now: npm run maxsimd -- models add {sys.argv[2]} --name NAME")
