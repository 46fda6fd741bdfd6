"""The export of a late-interaction checkpoint of the BERT, ModernBERT or XLM-RoBERTa family: graph, tokenizer and keys, for `maxsimd models add`.

Attention is exported as PyTorch computes it step by step. Callers must load the checkpoint with "eager" attention for that. The
other graph masks with minus infinity. Then a position that sees no attended one (padding beyond ModernBERT's window) becomes NaN,
and with it a text that shares a batch with a longer one.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn

EAGER = {"attn_implementation": "eager"}


class TokenVectors(nn.Module):
    """The backbone, and the layers of the checkpoint after it."""

    def __init__(self, backbone: nn.Module, heads: list[nn.Module]):
        super().__init__()
        self.backbone = backbone
        self.heads = nn.ModuleList(heads)

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        vectors = self.backbone(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        for head in self.heads:
            vectors = head({"token_embeddings": vectors})["token_embeddings"]
        return vectors


def positions(backbone: nn.Module) -> int:
    """The longest sequence that the backbone takes. RoBERTa counts its positions from after the padding id."""
    embeddings = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    padding = getattr(embeddings, "padding_idx", None)
    most = getattr(backbone.config, "max_position_embeddings", None)
    if most is None:
        sys.exit(f"{type(backbone).__name__} does not say how many positions it has: it is of no family that can be exported")
    return most - (0 if padding is None else padding + 1)


def within_positions(length: int, backbone: nn.Module, what: str) -> int:
    most = positions(backbone)
    if length > most:
        print(f"note: {what} is {length}, and the checkpoint has {most} positions: {most} it is", file=sys.stderr)
    return min(length, most)


def write_export(out: Path, vectors: TokenVectors, tokenizer, keys: dict) -> None:
    """`keys`: the keys of onnx_config.json that depend on the library that saved the checkpoint."""
    vectors.eval()
    out.mkdir(parents=True, exist_ok=True)
    example = tokenizer(["two texts", "of different length"], padding=True, return_tensors="pt")
    names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in example]
    with torch.no_grad():
        dim = vectors(**{name: example[name] for name in names}).shape[-1]
        torch.onnx.export(
            vectors, tuple(example[name] for name in names), str(out / "model.onnx"), input_names=names, output_names=["output"],
            dynamic_axes={name: {0: "batch_size", 1: "sequence_length"} for name in [*names, "output"]}, opset_version=14, dynamo=False,
        )
    config = {
        "model_type": "ColBERT", "model_class": type(vectors.backbone).__name__, "uses_token_type_ids": "token_type_ids" in names,
        "embedding_dim": dim, "pad_token_id": tokenizer.pad_token_id, **keys,
    }
    (out / "onnx_config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n")
    tokenizer.backend_tokenizer.save(str(out / "tokenizer.json"))
    saved = Tokenizer.from_file(str(out / "tokenizer.json"))
    saved.no_truncation()
    saved.no_padding()
    saved.save(str(out / "tokenizer.json"))
