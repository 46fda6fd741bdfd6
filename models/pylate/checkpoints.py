"""ColBERT checkpoints as PyLate saves them, and what PyLate computes with them.

`python checkpoints.py OUT` writes for each of them OUT/<name>/checkpoint (to be exported) and OUT/<name>/expected.json with
expected.f32: token vectors of texts and the scores of queries against documents. `bert` and `modernbert` have weights drawn
with a fixed seed. They are larger than at the start of a training, so that the vectors of tokens and texts differ well.
`trained` has the weights of all-MiniLM-L6-v2 (models/source-package.txt), a projection onto random orthonormal axes, and
texts that people wrote.
"""

import json
import random
import re
import sys
from pathlib import Path

import numpy as np
import torch
from pylate import models
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers import models as tokenizer_models
from tokenizers import trainers
from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

from score import matrix

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
import source  # noqa: E402
DIM = 48
TRAINED_DIM = 128
QUERY_LENGTH = 24
DOCUMENT_LENGTH = 120
DOCUMENTS = 200
QUERIES = 20
SPECIAL = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}


def texts(count: int, words: int, seed: int) -> list[str]:
    """Random sentences of words of this project's documents, with punctuation, capitals, accents, other scripts, and white space at
    the ends.

    They have no special tokens, which are special in a text for PyLate and ordinary text for the service.
    """
    words_of = (ROOT / "README.md").read_text().split() + (ROOT / "docs/reliability.md").read_text().split()
    source = sorted({word for word in words_of if len(word) <= 12})
    extra = ["naïve", "Größe,", "東京", "(e.g.", "3.14!", "don't", "—", "ﬁne", "e\u0301tude", "emoji🙂?"]
    draw = random.Random(seed)
    plain = [" ".join(draw.choice(source if draw.random() < 0.9 else extra) for _ in range(draw.randint(2, words))) for _ in range(count)]
    ends = ["", " ", "\t ", "\n", "\u00a0", "\u3000"]
    return [draw.choice(ends) + text + draw.choice(ends) for text in plain]


def written_texts() -> tuple[list[str], list[str]]:
    """Sentences of this project's documents. The titles of its decisions are the queries."""
    sentences, titles = [], []
    for file in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```", "", file.read_text(), flags=re.DOTALL)
        if file.parent.name == "decisions":
            titles += re.findall(r"^# \d+ (.+)$", text, flags=re.MULTILINE)
        paragraphs = [part.replace("\n", " ") for part in text.split("\n\n") if part[:1].isalpha()]
        sentences += [sentence for part in paragraphs for sentence in re.split(r"(?<=\.) ", part) if 6 <= len(sentence.split()) <= 40]
    draw = random.Random(3)
    plain = [sentence for sentence in dict.fromkeys(sentences) if "[" not in sentence]
    return draw.sample(plain, DOCUMENTS), draw.sample(titles, QUERIES)


def bert_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of the default model: that of BERT, uncased."""
    file = ROOT / "models/minilm-l6-maxsim/1/tokenizer.json"
    return PreTrainedTokenizerFast(tokenizer_file=str(file), model_input_names=["input_ids", "token_type_ids", "attention_mask"], **SPECIAL)


def modernbert_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE in the form of ModernBERT's, trained on this project's documents."""
    tokenizer = Tokenizer(tokenizer_models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, special_tokens=list(SPECIAL.values()), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train([str(file) for file in sorted((ROOT / "docs/architecture").glob("*.md"))], trainer)
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"], **SPECIAL)


def family(name: str):
    shape = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128, "initializer_range": 0.2}
    if name == "trained":
        tokenizer = bert_tokenizer()
        model = BertModel.from_pretrained(source.model_directory(), add_pooling_layer=False)
    elif name == "bert":
        tokenizer = bert_tokenizer()
        model = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **shape), add_pooling_layer=False)
    else:
        tokenizer = modernbert_tokenizer()
        ids = {f"{token}_token_id": getattr(tokenizer, f"{token}_token_id") for token in ("cls", "sep", "pad")}
        model = ModernBertModel(
            ModernBertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, local_attention=64, global_attn_every_n_layers=3,
                             bos_token_id=ids["cls_token_id"], eos_token_id=ids["sep_token_id"], **ids, **shape)
        )
    return model, tokenizer


def write(name: str, out: Path) -> None:
    torch.manual_seed(7)
    backbone, tokenizer = family(name)
    out.mkdir(parents=True, exist_ok=True)
    backbone.save_pretrained(out / "backbone")
    tokenizer.save_pretrained(out / "backbone")
    colbert = models.ColBERT(
        str(out / "backbone"), embedding_size=TRAINED_DIM if name == "trained" else DIM, query_length=QUERY_LENGTH, document_length=DOCUMENT_LENGTH,
        do_query_expansion=True, attend_to_expansion_tokens=False, device="cpu",
    )
    if name == "trained":
        weight = colbert[1].linear.weight
        torch.nn.init.orthogonal_(weight)
    colbert.save_pretrained(str(out / "checkpoint"))
    colbert = models.ColBERT(str(out / "checkpoint"), device="cpu")

    documents, queries = written_texts() if name == "trained" else (texts(DOCUMENTS, 10, 1), texts(QUERIES, 20, 2))
    document_vectors = [np.asarray(v, np.float32) for v in colbert.encode(documents, is_query=False, show_progress_bar=False)]
    query_vectors = [np.asarray(v, np.float32) for v in colbert.encode(queries, is_query=True, show_progress_bar=False)]
    vectors = [*query_vectors, *document_vectors]
    np.concatenate(vectors).astype("<f4").tofile(out / "expected.f32")
    (out / "expected.json").write_text(json.dumps({
        "dim": vectors[0].shape[1], "queries": queries, "documents": documents, "rows": [len(v) for v in vectors],
        "scores": matrix(query_vectors, document_vectors),
    }, ensure_ascii=False))


if __name__ == "__main__":
    for each in ("bert", "modernbert", "trained"):
        write(each, Path(sys.argv[1]) / each)
