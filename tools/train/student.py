"""Distils the teacher into a few of its layers, the encoder that ships.

    student.py DATA... --teacher DIR/checkpoint.npz --labels FILE --out DIR [--layers 0,2,5] [--passes 2]

The student starts from layers of the teacher and learns what the teacher says of each text, and what the label says where there is
one; passages.py then teaches it to read sentences within texts. The order of batches is a function of seed and step alone.
"""

import argparse
import hashlib
import json
import os
import pathlib
import time

import jax
import numpy as np

import data
import teacher
from model import HEADS, OUTPUTS, forward

RATE, HEAD_RATE = 1e-4, 3e-4
BELIEVE, BELIEVE_OWN = 0.7, 0.4  # the teacher's share of a target beside a label: of others' rows, of ours
SAID = 0.5  # what a text without a label counts


def initial(w, layers):
    return {k: v[np.array(layers)] if k.startswith("layers.") else v for k, v in w.items()}


def logits(w, ids, report=lambda done: None):
    """What a model says of encoded texts: (texts, OUTPUTS)."""
    out, run, done = np.zeros((len(ids), OUTPUTS), np.float32), jax.jit(forward), 0
    for indexes, length in data.buckets(ids, 128):
        x, mask = data.pad(ids, indexes, length, 128)
        out[indexes] = np.asarray(run(w, x, mask))[: len(indexes)]
        done += len(indexes)
        report(done)
    return out


def rows(a, big, tok):
    """Texts, the same encoded, their targets and weights, how many have a label (the first ones), and the rows of dev."""
    texts, y, wt, dev = data.build(data.read(a.data), teacher.lexicon(), a.seed, a.sample)
    n = len(texts)
    with open(a.labels, encoding="utf-8") as f:
        texts += [json.loads(line)["text"] for line in f][: a.sample or None]
    ids, begun = data.encode(tok, texts), time.monotonic()
    of = hashlib.sha256("\n".join(texts).encode() + big["head.weight"].tobytes()).hexdigest()[:12]
    cache = pathlib.Path(a.out) / f"said-{of}.npy"
    if cache.exists():
        said = 1 / (1 + np.exp(-np.load(cache)))
    else:
        told = [0]

        def report(done):
            if done >= told[0] + 20000:
                told[0] = done
                print(f"the teacher has read {done} of {len(ids)}, {done / (time.monotonic() - begun):.0f} a second", flush=True)

        z = logits(big, ids, report)
        np.save(cache, z)
        said = 1 / (1 + np.exp(-z))
    share = np.where(wt.max(1) >= 3.0, BELIEVE_OWN, BELIEVE)[:, None]
    target, weight = said.copy(), np.full(said.shape, SAID, np.float32)
    target[:n] = np.where(wt > 0, share * said[:n] + (1 - share) * y, said[:n])
    weight[:n] = np.maximum(wt, SAID)
    weight[:, len(HEADS) :] *= 0.3
    return texts, ids, target.astype(np.float32), weight.astype(np.float32), n, dev


def learn(w, ids, target, weight, batches, seed, rate, head_rate, focus=None):
    """The weights after these batches; focus, where there is one, tells of each text which of its tokens are in question."""
    m, v = ({k: np.zeros_like(x) for k, x in w.items()} for _ in range(2))
    total, begun, recent = len(batches), time.monotonic(), []
    for step, (indexes, length) in enumerate(batches):
        now, of = teacher.decay(step / total), None
        if focus is not None:
            of = np.zeros((teacher.BATCH, length), bool)
            of[:, 0] = True
            for k, i in enumerate(indexes):
                of[k, : len(focus[i])] = focus[i]
        x = teacher.batch(ids, target, weight, indexes, length, (seed, step))
        w, m, v, value = teacher.update(w, m, v, *x, step + 1.0, now * rate, now * head_rate, of)
        recent.append(value)
        if step % 200 == 199:
            took = time.monotonic() - begun
            print(f"batch {step + 1} of {total}: loss {np.mean([float(r) for r in recent]):.4f}, {(total - step) * took / step / 60:.0f} minutes left", flush=True)
            recent = []
    return w


def save(path, w):
    new = path.with_suffix(".new.npz")
    np.savez(new, **{k: np.asarray(x) for k, x in w.items()})
    os.replace(new, path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", nargs="+")
    p.add_argument("--teacher", default="build/teacher/checkpoint.npz")
    p.add_argument("--labels", default="build/teacher/labels.jsonl")
    p.add_argument("--out", default="build/student")
    p.add_argument("--layers", default="0,2,5")
    p.add_argument("--name", default="student")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--passes", type=float, default=2)
    p.add_argument("--sample", type=int, default=0, help="only so many rows, to try it out")
    a = p.parse_args()
    out = pathlib.Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(out / "compiled"))
    tok = teacher.tokenizer()
    big = teacher.restore(a.teacher)[0]
    _, ids, target, weight, _, dev = rows(a, big, tok)
    w = initial(big, [int(n) for n in a.layers.split(",")])
    batches = [b for n in range(int(np.ceil(a.passes))) for b in teacher.shuffled(ids, a.seed + n)]
    batches = batches[: int(len(batches) * a.passes / np.ceil(a.passes))]
    print(f"{len(ids)} texts, {len(batches)} batches", flush=True)
    w = learn(w, ids, target, weight, batches, a.seed, RATE, HEAD_RATE)
    save(out / f"{a.name}.npz", w)
    print("dev AUROC: " + teacher.judge(w, tok, dev), flush=True)


if __name__ == "__main__":
    main()
