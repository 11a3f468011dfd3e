"""Writes word vectors for `evenhand train --vectors`: what the encoder MiniLM knows of single words.

    vectors.py DATA... --out FILE

Words are those that the English training rows have twice or more (vectors of other languages' words, of which the encoder
knows nothing, did harm), the encoder's own whole words, and the vocabulary of the normal form. Each goes through the encoder
alone (as in Model2Vec, Minish Lab 2024). Its vector is the mean of what comes out beside the mean of what goes in, both at
length one on average about their means, times SCALE. Nothing is left out by principal components: what tells bias apart lies
in the small ones, and training learns its own projection.
"""

import argparse
import collections
import os
import pathlib
import re

import numpy as np

import data
import items
import learn
from model import Encoder, initial

WORD = re.compile(r"[^\W_](?:[^\W_]|['’](?=[^\W\d_]))*")
PLAIN = re.compile(r"[a-z']+")
MOST = 65_536
SCALE = 4.0  # with it the projection learns about as fast as the rest of the network


def vocabulary(rows, tokenizer):
    """The words, most frequent first."""
    counts = collections.Counter()
    for row in rows:
        if row.get("split") != "dev":
            counts.update(w for w in WORD.findall(data.normal(row["text"]).lower().replace("’", "'")) if PLAIN.fullmatch(w))
    words = [w for w, n in sorted(counts.items(), key=lambda c: (-c[1], c[0])) if n > 1]
    whole = [w for w, _ in sorted(tokenizer.get_vocab().items(), key=lambda c: c[1])]
    normal = (pathlib.Path(__file__).parents[2] / "detectors/normal/words.txt").read_text().lower().split()
    return [w for w in dict.fromkeys(words + whole + normal) if PLAIN.fullmatch(w)][:MOST]


def encode(tokenizer, words):
    """What goes into the encoder and what comes out, each the mean over a word's pieces."""
    w = initial(0)
    pieces = w["embeddings.word_embeddings.weight"]
    ids, focus = items.encode(tokenizer, items.alone(words))
    into = np.stack([pieces[x[1:-1]].mean(0) for x in ids])
    _, out = learn.read(Encoder(w), ids, focus, means=True)
    return into, out.astype(np.float32)


def level(v):
    """Vectors of length one, less their mean, and of length one on average again."""
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    v -= v.mean(0)
    return v / np.sqrt((v * v).sum(1).mean())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", nargs="+")
    p.add_argument("--out", default="build/teacher/vectors.bin")
    a = p.parse_args()
    tokenizer = learn.tokenizer()
    words = vocabulary(data.read(a.data), tokenizer)
    into, out = encode(tokenizer, words)
    vectors = np.concatenate([level(out), level(into)], 1) * (SCALE / np.sqrt(2))
    new = pathlib.Path(a.out + ".new")
    with new.open("wb") as f:
        f.write(f"EVENHAND-VECTORS/1 {len(words)} {vectors.shape[1]}\n".encode())
        f.write("".join(w + "\n" for w in words).encode())
        f.write(vectors.astype("<f4").tobytes())
    os.replace(new, a.out)
    print(f"{len(words)} words of {vectors.shape[1]} numbers: {a.out}")


if __name__ == "__main__":
    main()
