"""Rows, targets, counterfactuals and batches: the same reading of the labels as detectors/classifier/train."""

import hashlib
import json
import pathlib
import re
import unicodedata

import numpy as np

from model import GROUNDS, HEADS, OUTPUTS

SAFETY = HEADS[2:]
KINDS = {
    "chemical_biological": "violence", "cybercrime_intrusion": "illegal_instructions", "illegal": "illegal_instructions",
    "iwp": "violence", "vcr": "violence", "ncr": "illegal_instructions", "ssh": "self_harm", "Physical Harm/Self-harm": "self_harm",
    "Physical Harm/Assault and battery": "violence", "Physical Harm/Weapon making": "violence", "Illegal Activity/Weapon:": "violence",
    "malicious_uses": "illegal_instructions",
}
PREFIXES = ("Illegal Activity/", "Malware Viruses/", "Fraud/Deception/", "Economic Harm/")
ORDINARY = {"clinc_assistant", "sgd_dialogue", "gsm8k", "vicuna_eval_answers", "self_instruct", "bold_wikipedia_neutral", "winobias_neutral"}
FOREIGN = {"mlma_fr"}  # whose rows have no "lang"
QUOTA = {"edos": 14000, "civil_toxic_spans": 8000, "redditbias": 8000}
WEIGHT = {
    "edos": 0.7, "davidson": 0.5, "vicomtech_stormfront": 0.7, "mlma_en": 0.3, "implicit_hate": 0.6, "redditbias": 0.4,
    "civil_toxic_spans": 0.6, "wiki_comments": 0.8, "surge_toxicity": 0.8, "madlibs_identity": 0.3, "seegull_statements": 0.8,
    "presidio_pii": 0.3, "hatemojibuild": 1.2,
}
OWN, HARD = 3.0, 1.6


def normal(text):
    """Compatibility forms composed, invisible characters out, emoji to their names."""
    out = []
    for c in unicodedata.normalize("NFKC", text):
        kind = unicodedata.category(c)
        if kind == "So":
            out.append(" " + unicodedata.name(c, "").lower() + " ")
        elif kind not in ("Cf", "Mn", "Sk"):
            out.append(c)
    return " ".join("".join(out).split())


def english(row):
    return row.get("lang", "en") == "en" and row["source"] not in FOREIGN


def read(paths, wanted=english):
    """Rows of JSONL files, or folders of them, in the order of their names; English ones unless told otherwise."""
    for path in map(pathlib.Path, paths):
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            for line in file.open(encoding="utf-8"):
                row = json.loads(line)
                row.setdefault("source", file.stem)
                if wanted(row):
                    yield row


def share(row, salt):
    key = row.get("skeleton") or f"{row['source']}/{row.get('id', '')}/{row['text']}"
    return int.from_bytes(hashlib.sha256(f"{salt}\0{key}".encode()).digest()[:4], "big") / 2**32


def target(row):
    """What is wanted of each output and what it counts: 0 where nobody knows."""
    y, w = np.zeros(OUTPUTS, np.float32), np.zeros(OUTPUTS, np.float32)

    def put(head, value, weight=1.0):
        y[HEADS.index(head)], w[HEADS.index(head)] = value, weight

    label = row["label"]
    bias, toxic, unsafe = label.get("bias"), label.get("toxic"), label.get("unsafe")
    if bias is not None:
        put("bias", bias)
    elif toxic == 0:
        put("bias", 0, 0.4)
    if toxic is not None:
        put("toxicity", toxic)
    meta = row.get("meta")
    category = meta.get("category") if isinstance(meta, dict) else None
    kind = str(label.get("kind") or "")
    if unsafe == 0:
        for head in SAFETY:
            put(head, 0)
    elif unsafe:
        head = category if category in SAFETY else KINDS.get(kind)
        if head is None and (kind.startswith(PREFIXES) or row["source"] == "advbench"):
            head = "illegal_instructions"
        if head:
            put(head, unsafe)
    elif not bias and not toxic and (bias is not None or toxic is not None):
        for head in SAFETY:
            put(head, 0, 0.3)
    grounds = [g for g in row.get("characteristic") or [] if g in GROUNDS]
    if grounds and (bias or 0) >= 0.5:
        for g in GROUNDS:
            i = len(HEADS) + GROUNDS.index(g)
            y[i], w[i] = float(g in grounds), 0.3
    return y, w


class Lexicon:
    """The identity terms of a file of detectors/classifier/lexicon, to exchange one group for another."""

    def __init__(self, path):
        self.terms, self.by = {}, {}
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            head, terms = line.split(":", 1)
            ground, kind = head.split()
            for term in terms.split(","):
                term = term.strip()
                forms = [term[:-1], term[:-1] + "s"] if term.endswith("+") else term.split("/")
                for n, form in enumerate(forms):
                    shape = "persons" if kind == "person" and n == 1 else kind
                    self.terms[form] = (ground, shape)
                    self.by.setdefault((ground, shape), []).append(form)
        words = sorted(self.terms, key=len, reverse=True)
        self.pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, words)) + r")\b", re.IGNORECASE)

    def swap(self, text, rng):
        """The text about another ground, and that ground; None when it mentions nobody."""
        first = self.pattern.search(text)
        if not first:
            return None
        origin = self.terms[first.group().lower()][0]
        to = GROUNDS[rng.integers(len(GROUNDS))]
        while to == origin:
            to = GROUNDS[rng.integers(len(GROUNDS))]
        chosen, changed = {}, False

        def other(match):
            nonlocal changed
            ground, shape = self.terms[match.group().lower()]
            if ground != origin or (to, shape) not in self.by:
                return match.group()
            terms = self.by[(to, shape)]
            changed = True
            return chosen.setdefault(shape, terms[rng.integers(len(terms))])

        swapped = self.pattern.sub(other, text)
        return (swapped, to) if changed else None


def weigh(row, mentions):
    w = WEIGHT.get(row["source"], OWN if row.get("skeleton") else 1.0)
    return w * HARD if mentions and row["label"].get("bias") == 0 else w


def build(rows, lexicon, seed, sample=0):
    """Texts, targets and weights for training, counterfactuals included; and the dev rows."""
    rng = np.random.default_rng(seed)
    train, dev, counts = [], [], {}
    for row in sorted(rows, key=lambda r: share(r, "quota")):
        if row.get("split") == "dev":
            dev.append(row)
            continue
        counts[row["source"]] = counts.get(row["source"], 0) + 1
        if counts[row["source"]] <= QUOTA.get(row["source"], 1 << 60):
            train.append(row)
    if sample:
        train, dev = train[:sample], dev[: max(400, sample // 4)]
    texts, ys, ws = [], [], []
    for row in train:
        text = normal(row["text"])
        y, w = target(row)
        if not w.any():
            continue
        swapped = lexicon.swap(text, rng) if row["label"].get("bias") is not None and row["source"] not in ORDINARY else None
        w = w * weigh(row, swapped is not None)
        texts.append(text), ys.append(y), ws.append(w)
        if swapped:
            y, w = y.copy(), w * 0.5
            if y[0] >= 0.5:
                for i, g in enumerate(GROUNDS):
                    y[len(HEADS) + i], w[len(HEADS) + i] = float(g == swapped[1]), 0.15
            texts.append(swapped[0]), ys.append(y), ws.append(w)
    return texts, np.stack(ys), np.stack(ws).astype(np.float32), dev


LENGTHS = (16, 32, 64, 96)


def buckets(ids, size, rng=None):
    """Batches of texts of about one length, as (indexes, padded length)."""
    out = []
    order = np.arange(len(ids)) if rng is None else rng.permutation(len(ids))
    by = {n: [] for n in LENGTHS}
    for i in order:
        n = next(n for n in LENGTHS if len(ids[i]) <= n)
        by[n].append(i)
        if len(by[n]) == size:
            out.append((by[n], n))
            by[n] = []
    out += [(rest, n) for n, rest in by.items() if rest]
    return out


def pad(ids, indexes, length, size):
    """Arrays of a batch, filled up with empty rows to a fixed size so that nothing is compiled twice."""
    out, mask = np.zeros((size, length), np.int32), np.zeros((size, length), bool)
    mask[:, 0] = True
    for k, i in enumerate(indexes):
        out[k, : len(ids[i])] = ids[i]
        mask[k, : len(ids[i])] = True
    return out, mask
