"""Exports a PyLate checkpoint with PyLate's own tool, and puts right what its version 0.1.0 leaves out: see `models/convert.sh`.

It writes `do_query_expansion: false` whatever the checkpoint says, keeps the truncation of a call in tokenizer.json, and names
the file of its keys like one of PyLate's own. Later versions do none of this; here every key says what the checkpoint says.

Attention is exported as PyTorch computes it step by step ("eager"). The other graph masks with minus infinity, and a position
that sees no attended one (padding beyond ModernBERT's window) becomes NaN, and with it the text beside a longer one.
"""

import json
import sys
from functools import partial
from pathlib import Path

from colbert_export import export, export_model
from pylate import models
from tokenizers import Tokenizer


def convert(checkpoint: str, out: Path) -> None:
    export.pylate_models.ColBERT = partial(models.ColBERT, model_kwargs={"attn_implementation": "eager"})
    export_model(model_name=checkpoint, output_dir=out, force=True, verbose=False)
    colbert = models.ColBERT(checkpoint, device="cpu")
    written = out / "config_sentence_transformers.json"
    config = json.loads(written.read_text())
    config["do_query_expansion"] = bool(colbert.do_query_expansion)
    config["attend_to_expansion_tokens"] = bool(colbert.attend_to_expansion_tokens)
    config["do_lower_case"] = bool(getattr(colbert[0], "do_lower_case", False))
    (out / "onnx_config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n")
    written.unlink()
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(out / "tokenizer.json"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: convert.sh CHECKPOINT DIRECTORY")
    convert(sys.argv[1], Path(sys.argv[2]))
    print(f"now: npm run maxsimd -- models add {sys.argv[2]} --name NAME")
