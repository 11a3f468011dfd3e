"""Teaches a student to read sentences within texts: what stands around a sentence helps to understand it and changes nothing else.

    passages.py DATA... --ordinary FILE --start FILE.npz --teacher DIR/checkpoint.npz --labels FILE --out DIR [--name NAME]

A text of the data is put among sentences that have nothing to do with it, and the answer about it stays what it was; the answer about
such a neighbour is no. Ordinary passages (split train of what ordinary.py writes) are read sentence by sentence: no. The mean is taken
over the tokens of the sentence in question, as the program does (encoder.ReadIn).
"""

import argparse
import pathlib
import re

import jax
import numpy as np

import data
import student
import teacher
from model import HEADS, OUTPUTS

RATE, HEAD_RATE = 8e-5, 2e-4
PASSAGE = 320  # characters, as in detectors/classifier/second.go
OTHERS, UNLABELLED, TAME = 34000, 8000, 5000  # rows that are not ours; of the teacher's labels; of the ordinary sources known before
END = re.compile(r"(?<=[.!?])\s+")


def no(weight):
    w = np.zeros(OUTPUTS, np.float32)
    w[:2] = weight  # bias and toxicity
    return np.zeros(OUTPUTS, np.float32), w


def sentence(text):
    return 25 <= len(text) <= 170 and text[-1] in ".!?"


class Maker:
    """Makes items: what stands before, the text in question, what stands after, target, weight."""

    def __init__(self, rng, neighbours, harmless):
        self.rng, self.neighbours, self.harmless, self.items = rng, neighbours, harmless, []

    def add(self, before, text, after, target, weight):
        self.items.append((" ".join(before), text, " ".join(after), target, weight))

    def among(self, text, target, weight):
        """The text, or a sentence of it, among others."""
        rng, before, after, room = self.rng, [], [], PASSAGE - len(text)
        for _ in range(rng.integers(1, 5)):
            of = self.harmless if rng.random() < 0.3 else self.neighbours
            other = of[rng.integers(len(of))]
            if len(other) + 1 <= room:
                room -= len(other) + 1
                (before if rng.random() < 0.5 else after).append(other)
        parts = [s for s in END.split(text) if s]
        if len(parts) > 1 and rng.random() < 0.6:
            k = rng.integers(len(parts))
            self.add(before + parts[:k], parts[k], parts[k + 1 :] + after, target, weight)
        else:
            self.add(before, text, after, target, weight)
        if rng.random() < 0.5 and before + after:
            k = rng.integers(len(before) + len(after))
            around = before + [text] + after
            k += k >= len(before)  # not the text itself
            self.add(around[:k], around[k], around[k + 1 :], *no(1))

    def ordinary(self, parts, weight):
        """A sentence of an ordinary text within its passage, or alone."""
        k = self.rng.integers(len(parts))
        before, text, after = parts[:k], parts[k], parts[k + 1 :]
        if self.rng.random() < 0.35:
            before, after = [], []
        while before and len(" ".join(before + [text])) > 200:
            before = before[1:]
        while after and len(" ".join(before + [text] + after)) > PASSAGE:
            after = after[:-1]
        self.add(before, text, after, *no(weight))


def items(a, texts, target, weight, n):
    """What is learnt from; the first n of the texts have a label."""
    rng = np.random.default_rng(a.seed)
    fresh = [r for r in data.read([a.ordinary]) if r["split"] == "train"]
    tame = [r for r in data.read(a.data) if r["source"] in data.ORDINARY and r.get("split") != "dev"]
    fresh, tame = ([[s for s in END.split(data.normal(r["text"])) if s] for r in rows] for rows in (fresh, tame))
    own = weight[:n].max(1) >= 3
    harmless = [texts[i] for i in range(n) if own[i] and target[i, 0] < 0.5 and sentence(texts[i])]
    make = Maker(rng, [s for parts in fresh + tame for s in parts if sentence(s) and s[0].isupper()], harmless)
    for i in np.flatnonzero(own):
        if rng.random() < 0.35:
            make.add([], texts[i], [], target[i], weight[i])
        if rng.random() < 0.85:
            make.among(texts[i], target[i], weight[i])
    for i in rng.permutation(np.flatnonzero(~own))[:OTHERS]:
        if rng.random() < 0.6 or len(texts[i]) > 250:
            make.add([], texts[i], [], target[i], weight[i])
        else:
            make.among(texts[i], target[i], weight[i])
    for i in n + rng.permutation(len(texts) - n)[:UNLABELLED]:
        make.add([], texts[i], [], target[i], weight[i])
    for parts in fresh + fresh:
        make.ordinary(parts, 1.5)
    for i in rng.permutation(len(tame))[:TAME]:
        make.ordinary(tame[i], 1)
    return make.items


def encode(tok, items):
    """Token ids of passages, and which of them are in question, the marks of beginning and end among these."""
    longest, ids, focus = data.LENGTHS[-1] - 2, [], []
    for before, text, after in zip(*(tok.encode_batch([x[k] for x in items], add_special_tokens=False) for k in range(3))):
        before = before.ids[max(0, len(before.ids) + len(text.ids) - longest) :]
        row = (before + text.ids + after.ids)[:longest]
        of = np.zeros(len(row) + 2, bool)
        of[[0, -1]] = True
        of[1 + len(before) : 1 + min(len(before) + len(text.ids), longest)] = True
        ids.append([101] + row + [102]), focus.append(of)
    return ids, focus


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", nargs="+")
    p.add_argument("--ordinary", required=True)
    p.add_argument("--start", required=True)
    p.add_argument("--teacher", default="build/teacher/checkpoint.npz")
    p.add_argument("--labels", default="build/teacher/labels.jsonl")
    p.add_argument("--out", default="build/student")
    p.add_argument("--name", default="student")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--passes", type=int, default=2)
    p.add_argument("--sample", type=int, default=0, help="only so many rows, to try it out")
    a = p.parse_args()
    out = pathlib.Path(a.out)
    jax.config.update("jax_compilation_cache_dir", str(out / "compiled"))
    tok = teacher.tokenizer()
    texts, _, target, weight, n, dev = student.rows(a, teacher.restore(a.teacher)[0], tok)
    made = items(a, texts, target, weight, n)
    ids, focus = encode(tok, made)
    target, weight = np.stack([x[3] for x in made]), np.stack([x[4] for x in made])
    start = np.load(a.start)
    w = {k: start[k] for k in start.files}
    batches = [b for k in range(a.passes) for b in teacher.shuffled(ids, a.seed + k)]
    print(f"{len(ids)} passages, {len(batches)} batches", flush=True)
    w = student.learn(w, ids, target, weight, batches, a.seed, RATE, HEAD_RATE, focus)
    student.save(out / f"{a.name}.npz", w)
    print("dev AUROC: " + teacher.judge(w, tok, dev), flush=True)


if __name__ == "__main__":
    main()
