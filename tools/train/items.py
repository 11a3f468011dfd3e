"""What the encoder learns from: items, each a text in question with what stands before and after it.

A text of the data stands alone, and once more among sentences that have nothing to do with it, where the answer about it stays what it
was and the answer about such a neighbour is no, for every head. Ordinary passages (split train of what ordinary.py writes, and the
ordinary sources of the data) are read sentence by sentence: no. The answer is about the text in question: the mean is taken over its tokens, as the program does (encoder.ReadIn).
"""

import dataclasses
import re

import numpy as np

import data
from model import HEADS, OUTPUTS

PASSAGE = 320  # characters, as in detectors/classifier/second.go
TAME = 6000  # ordinary texts of the data
END = re.compile(r"(?<=[.!?])\s+")


@dataclasses.dataclass
class Item:
    before: str
    text: str
    after: str
    target: np.ndarray  # of each output
    weight: np.ndarray  # what it counts; 0 where nobody knows


def no(weight):
    w = np.zeros(OUTPUTS, np.float32)
    w[: len(HEADS)] = weight
    return np.zeros(OUTPUTS, np.float32), w


def sentence(text):
    return 25 <= len(text) <= 170 and text[-1] in ".!?"


def parts(text):
    return [s for s in END.split(text) if s]


class Maker:
    def __init__(self, rng, neighbours, harmless):
        self.rng, self.neighbours, self.harmless, self.items = rng, neighbours, harmless, []
        self.tame = set()  # sentences of texts in which nothing is found: they stand in their twins, too

    def add(self, before, text, after, target, weight):
        self.items.append(Item(" ".join(before), text, " ".join(after), target, weight))

    def among(self, text, target, weight):
        """The text, or a sentence of it, among others, and sometimes one of the others."""
        rng, before, after, room = self.rng, [], [], PASSAGE - len(text)
        for _ in range(rng.integers(1, 6)):
            of = self.harmless if rng.random() < 0.35 else self.neighbours
            other = of[rng.integers(len(of))]
            if len(other) + 1 <= room:
                room -= len(other) + 1
                (before if rng.random() < 0.5 else after).append(other)
        own = parts(text)
        found = target[: len(HEADS)].max() >= 0.5
        telling = [k for k, s in enumerate(own) if not (found and s in self.tame)]
        if len(own) > 1 and telling and rng.random() < 0.6:
            k = telling[rng.integers(len(telling))]
            self.add(before + own[:k], own[k], own[k + 1 :] + after, target, weight)
        else:
            self.add(before, text, after, target, weight)
        if before + after and rng.random() < 0.6:
            around = before + [text] + after
            k = rng.integers(len(before) + len(after))
            k += k >= len(before)  # not the text itself
            self.add(around[:k], around[k], around[k + 1 :], *no(1.5))

    def tames(self, texts, target):
        """What a harmful text shares with a harmless one is not what makes it harmful."""
        self.tame |= {s for t, y in zip(texts, target) if not y[: len(HEADS)].any() for s in parts(t)}

    def unlabelled(self, text):
        """A text of which nothing is known, alone or among others."""
        (item,) = alone([text])
        if self.rng.random() < 0.4 and len(text) < 250:
            self.among(text, item.target, item.weight)
        else:
            self.items.append(item)

    def labelled(self, texts, target, weight):
        """Texts with a label, each alone and most of ours once more among others."""
        self.tames(texts, target)
        for text, y, w in zip(texts, target, weight):
            self.add([], text, [], y, w)
            if self.rng.random() < (0.9 if w.max() >= data.OWN else 0.12) and len(text) < 250:
                self.among(text, y, w)

    def surrounded(self, texts, target, weight):
        """Texts with a label among others, those in which something is found twice, and a third of all alone."""
        self.tames(texts, target)
        for text, y, w in zip(texts, target, weight):
            if len(text) < 250:
                for _ in range(2 if y[: len(HEADS)].max() >= 0.5 else 1):
                    self.among(text, y, w)
            if len(text) >= 250 or self.rng.random() < 0.35:
                self.add([], text, [], y, w)

    def ordinary(self, sentences, weight):
        """A sentence of an ordinary text within its passage, or alone."""
        k = self.rng.integers(len(sentences))
        if self.rng.random() < 0.35:
            self.add([], sentences[k], [], *no(weight))
        else:
            self.within(sentences, k, weight)

    def each(self, sentences, weight):
        """Every sentence of an ordinary text, within its passage and alone."""
        for k, text in enumerate(sentences):
            self.add([], text, [], *no(weight))
            self.within(sentences, k, weight)

    def within(self, sentences, k, weight):
        before, text, after = sentences[:k], sentences[k], sentences[k + 1 :]
        while before and len(" ".join(before + [text])) > 200:
            before = before[1:]
        while after and len(" ".join(before + [text] + after)) > PASSAGE:
            after = after[:-1]
        self.add(before, text, after, *no(weight))


def build(a, lexicon):
    """A Maker with the items of a.data and a.ordinary, and the rows of dev."""
    rng = np.random.default_rng(a.seed)
    rows = list(data.read(a.data))
    texts, target, weight, dev = data.build(rows, lexicon, a.seed, a.sample)
    fresh = [r for r in data.read([a.ordinary]) if r["split"] == "train"]
    tame = [r for r in rows if r["source"] in data.ORDINARY and r.get("split") != "dev"]
    fresh, tame = ([p for r in rs if (p := parts(data.normal(r["text"])))] for rs in (fresh, tame))
    own = weight.max(1) >= data.OWN
    harmless = [t for t, y, o in zip(texts, target, own) if o and not y[: len(HEADS)].any() and sentence(t)]
    make = Maker(rng, [s for p in fresh + tame for s in p if sentence(s) and s[0].isupper()], harmless)
    make.labelled(texts, target, weight)
    for p in fresh + fresh:
        make.ordinary(p, 1.5)
    for i in rng.permutation(len(tame))[:TAME]:
        make.ordinary(tame[i], 1)
    return make, dev


def alone(texts):
    """Items of texts of which nothing is known."""
    nothing = np.zeros(OUTPUTS, np.float32)
    return [Item("", t, "", nothing, nothing) for t in texts]


def marks(tokenizer):
    """Ids of a text's beginning and end, and of what stands for a piece that is not shown: BERT's or XLM-R's."""
    for names in (("[CLS]", "[SEP]", "[MASK]"), ("<s>", "</s>", "<mask>")):
        if None not in (of := [tokenizer.token_to_id(n) for n in names]):
            return of
    raise SystemExit("a vocabulary without marks of beginning and end")


def encode(tokenizer, items):
    """Token ids, and which of them are in question, the marks of beginning and end among these."""
    longest, ids, focus = data.LENGTHS[-1] - 2, [], []
    first, last, _ = marks(tokenizer)
    pieces = (tokenizer.encode_batch([getattr(x, name) for x in items], add_special_tokens=False) for name in ("before", "text", "after"))
    for before, text, after in zip(*pieces):
        before = before.ids[max(0, len(before.ids) + len(text.ids) - longest) :]
        row = (before + text.ids + after.ids)[:longest]
        of = np.zeros(len(row) + 2, bool)
        of[[0, -1]] = True
        of[1 + len(before) : 1 + min(len(before) + len(text.ids), longest)] = True
        ids.append([first] + row + [last]), focus.append(of)
    return ids, focus
