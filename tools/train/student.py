"""Distils the teacher into the encoder that ships: layers of its own, and early exits.

    student.py DATA... --ordinary FILE --teacher DIR/teacher.npz --labels FILE --out DIR [--layers 0,1,2,3,4,5] [--passes 1]

The student starts from layers of the teacher, all of them unless told otherwise, and learns, of each item, what the teacher says of it,
the mean that the teacher says it by, and what the label says where there is one. Its early exits learn to say the same after the first
layers. The order of batches is a function of seed and step alone.
"""

import argparse
import hashlib
import json
import pathlib

import numpy as np

import items
import learn
from model import Encoder, with_exits

RATE, HEAD_RATE = 6e-5, 5e-4


def layers(w, chosen):
    return {k: v[np.array(chosen)] if k.startswith("layers.") else v for k, v in w.items()}


def told(a, big, ids, focus):
    """What the teacher says of the items, kept by what they are and who says it."""
    of = hashlib.sha256(repr(ids).encode() + big["head.weight"].tobytes()).hexdigest()[:12]
    cache = pathlib.Path(a.out) / f"said-{of}.npz"
    if cache.exists():
        z = np.load(cache)
        return z["logits"], z["means"]
    logits, means = learn.read(Encoder(big), ids, focus, told="the teacher has read", means=True)
    np.savez(cache, logits=logits, means=means)
    return logits, means


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", nargs="+")
    p.add_argument("--ordinary", required=True, help="what ordinary.py writes")
    p.add_argument("--teacher", default="build/teacher/teacher.npz")
    p.add_argument("--labels", default="build/teacher/labels.jsonl", help="texts without labels: what the teacher labelled")
    p.add_argument("--out", default="build/teacher")
    p.add_argument("--layers", default="0,1,2,3,4,5")
    p.add_argument("--name", default="student")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--passes", type=int, default=1)
    p.add_argument("--unlabelled", type=int, default=90_000)
    p.add_argument("--sample", type=int, default=0, help="only so many rows, to try it out")
    a = p.parse_args()
    out, tok, big = pathlib.Path(a.out), learn.tokenizer(), learn.load(a.teacher)
    make, dev = items.build(a, learn.lexicon())
    labelled, made = len(make.items), make.items
    with open(a.labels, encoding="utf-8") as f:
        for line in list(f)[: a.sample or a.unlabelled]:
            make.unlabelled(json.loads(line)["text"])
    ids, focus = items.encode(tok, made)
    logits, means = told(a, big, ids, focus)
    target, weight = learn.distilled(made, logits)
    batches = [b for n in range(a.passes) for b in learn.shuffled(ids, a.seed + n)]
    print(f"{labelled} items of texts with a label, {len(made) - labelled} of others, {len(batches)} batches of {learn.BATCH}", flush=True)
    model = Encoder(with_exits(layers(big, [int(n) for n in a.layers.split(",")])))
    learn.learn(model, tok, ids, focus, batches, lambda i: (target[i], weight[i], means[i]), RATE, HEAD_RATE, a.seed, out / f"{a.name}.pt")
    learn.save(out / f"{a.name}.npz", model)
    (out / f"{a.name}.pt").unlink(missing_ok=True)
    print("dev AUROC: " + learn.judge(model, tok, dev), flush=True)


if __name__ == "__main__":
    main()
