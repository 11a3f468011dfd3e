"""Fine-tunes the MiniLM encoder on labelled texts, and labels texts for smaller models to learn from.

    teacher.py train DATA... --ordinary FILE --out DIR [--passes 2] [--sample N]
    teacher.py label DATA... --out DIR --labels FILE [--count 300000]

train writes DIR/teacher.npz, a checkpoint every few minutes, and goes on from that. The order of batches is a function of seed and
step alone. student.py makes of it what ships.
"""

import argparse
import json
import os
import pathlib
import time

import numpy as np

import data
import items
import learn
import templates
from model import GROUNDS, HEADS, Encoder, initial

RATE, HEAD_RATE = 6e-5, 1e-3


def train(a):
    out, start, tok = pathlib.Path(a.out), time.monotonic(), learn.tokenizer()
    make, dev = items.build(a, learn.lexicon())
    made = make.items
    ids, focus = items.encode(tok, made)
    target, weight = np.stack([x.target for x in made]), np.stack([x.weight for x in made])
    batches = [b for p in range(a.passes) for b in learn.shuffled(ids, a.seed + p)]
    print(f"{len(made)} items, {len(dev)} dev texts, {len(batches)} batches of {learn.BATCH}; prepared in {time.monotonic() - start:.0f} s", flush=True)
    model = Encoder(initial(a.seed))
    learn.learn(model, tok, ids, focus, batches, lambda i: (target[i], weight[i], None), RATE, HEAD_RATE, a.seed, out / "checkpoint.pt")
    learn.save(out / "teacher.npz", model)
    (out / "checkpoint.pt").unlink(missing_ok=True)
    print("dev AUROC: " + learn.judge(model, tok, dev), flush=True)


def label(a):
    texts = templates.texts(data.read(a.data), learn.lexicon(), a.seed, a.count)
    model = Encoder(learn.load(pathlib.Path(a.out) / "teacher.npz"))
    z = learn.read(model, *items.encode(learn.tokenizer(), items.alone([t for t, _ in texts])), told="labelled")
    new = pathlib.Path(a.labels + ".new")
    with new.open("w", encoding="utf-8") as f:
        for n, ((text, source), row) in enumerate(zip(texts, 1 / (1 + np.exp(-z)))):
            said = {h: round(float(p), 4) for h, p in zip(HEADS, row)}
            line = {"id": f"teacher-{n:06d}", "text": text, "label": {}, "source": source, "split": "train", "teacher": said}
            if said["bias"] > 0.5:
                line["characteristic"] = [g for g, p in zip(GROUNDS, row[len(HEADS) :]) if p > 0.5] or None
            f.write(json.dumps(line, ensure_ascii=False) + "\n")
    os.replace(new, a.labels)
    print(f"{len(texts)} texts labelled: {a.labels}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["train", "label"])
    p.add_argument("data", nargs="+")
    p.add_argument("--ordinary", help="what ordinary.py writes")
    p.add_argument("--out", default="build/teacher")
    p.add_argument("--labels", default="build/teacher/labels.jsonl")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--passes", type=int, default=2)
    p.add_argument("--sample", type=int, default=0, help="only so many rows, to try it out")
    p.add_argument("--count", type=int, default=300_000)
    a = p.parse_args()
    pathlib.Path(a.out).mkdir(parents=True, exist_ok=True)
    train(a) if a.what == "train" else label(a)


if __name__ == "__main__":
    main()
