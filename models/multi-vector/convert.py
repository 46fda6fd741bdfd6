"""Exports a checkpoint as sentence-transformers 6 saves its `MultiVectorEncoder`: see `models/convert.sh`.

Every key has the value of the checkpoint. A checkpoint that the service cannot follow is refused.
"""

import sys
from pathlib import Path

from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pylate"))
from onnx_export import EAGER, TokenVectors, positions, within_positions, write_export  # noqa: E402

PROBES = ["word", "Two words", " space before", "(brackets)", "3.14", "\u00e9tude", "\u6771\u4eac"]


def load(checkpoint: str) -> tuple[MultiVectorEncoder, Transformer, list, MultiVectorMask]:
    model = MultiVectorEncoder(checkpoint, device="cpu", model_kwargs=EAGER)
    transformer, *rest = list(model)
    masks = [module for module in rest if isinstance(module, MultiVectorMask)]
    heads = [module for module in rest if not isinstance(module, MultiVectorMask)]
    strange = [type(module).__name__ for module in heads if not isinstance(module, (Dense, Normalize))]
    if not isinstance(transformer, Transformer) or strange or len(masks) != 1:
        sys.exit(f"modules are not Transformer, Dense, MultiVectorMask and Normalize alone: {', '.join(strange) or 'another order'}")
    [mask] = masks
    if mask.skiplist_tasks != ["document"]:
        sys.exit(f"skiplist_tasks is {mask.skiplist_tasks}: the service skips tokens of documents alone")
    if mask.keep_only_token_ids:
        sys.exit("keep_only_token_ids is set, which the service does not know")
    return model, transformer, heads, mask


def prompt_of(model: MultiVectorEncoder, kind: str) -> str:
    """Refuses a prompt that the tokenizer joins with the text. The service tokenises them apart, at the white space between them."""
    tokenizer = model.tokenizer
    prompt = model.prompts.get(kind, model.prompts.get(model.default_prompt_name)) or ""
    # An added token may end with the space.
    holds_space = any(token != token.rstrip() and prompt.endswith(token) for token in tokenizer.get_added_vocab())
    words = prompt if holds_space else prompt.rstrip()

    def ids(text: str) -> list[int]:
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    if any(ids(prompt + text) != ids(words) + ids(prompt[len(words):] + text) for text in PROBES):
        sys.exit(f"the tokenizer joins the {kind} prompt {prompt!r} with the text that follows it")
    return prompt


def lengths(transformer: Transformer) -> dict:
    """Expansion and lengths. `fixed` queries have one length, `min` queries have at least that length."""
    backbone, tokenizer, expansion = transformer.model, transformer.tokenizer, transformer.query_expansion

    def most(what: str) -> int:
        given = getattr(transformer, what)
        if given is None:
            return min(tokenizer.model_max_length, positions(backbone))
        return within_positions(given, backbone, what)

    if expansion is None:
        return {"query_length": most("query_length"), "document_length": most("document_length"), "do_query_expansion": False,
                "mask_token_id": tokenizer.mask_token_id, "maxsimd": {"prompts": True}}
    token = expansion["token"] or tokenizer.mask_token or tokenizer.eos_token
    longest = max(most("query_length"), expansion["length"]) if expansion["strategy"] == "min" else expansion["length"]
    return {"query_length": expansion["length"], "document_length": most("document_length"), "do_query_expansion": True,
            "attend_to_expansion_tokens": expansion["attend"], "mask_token_id": tokenizer.convert_tokens_to_ids(token),
            "maxsimd": {"prompts": True, "query_length_max": longest}}


def known_words(mask: MultiVectorMask, tokenizer) -> list[str]:
    """In sentence-transformers a word that is no token skips nothing."""
    return [
        word for word in dict.fromkeys(mask.skiplist_words)
        if tokenizer.convert_tokens_to_ids(word) not in (None, tokenizer.unk_token_id) or word == tokenizer.unk_token
    ]


def convert(checkpoint: str, out: Path) -> None:
    model, transformer, heads, mask = load(checkpoint)
    write_export(out, TokenVectors(transformer.model, heads), model.tokenizer, {
        "model_name": checkpoint,
        "query_prefix": prompt_of(model, "query"),
        "document_prefix": prompt_of(model, "document"),
        "skiplist_words": known_words(mask, model.tokenizer),
        # sentence-transformers stores it in the tokenizer.
        "do_lower_case": False,
        **lengths(transformer),
    })


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: convert.sh CHECKPOINT DIRECTORY")
    convert(sys.argv[1], Path(sys.argv[2]))
    print(f"now: npm run maxsimd -- models add {sys.argv[2]} --name NAME")
