"""Fine-tunes the MiniLM encoder on labelled texts, and labels texts for the small model to learn from.

    teacher.py train DATA... --out DIR [--passes 2] [--minutes 100] [--sample N]
    teacher.py label DATA... --out DIR --labels FILE [--count 300000]

train writes DIR/checkpoint.npz every few minutes and goes on from it. The order of batches is a function of seed and
step alone, so a run that was interrupted learns what an uninterrupted one learns. student.py makes of it what ships.
"""

import argparse
import json
import os
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

import data
import templates
from model import GROUNDS, HEADS, folder, forward, initial, loss

BATCH, MASK, MASKED = 32, 103, 0.06
RATE, HEAD_RATE, WARM = 4e-5, 1e-3, 0.06


def lexicon():
    return data.Lexicon(pathlib.Path(__file__).parents[2] / "detectors/classifier/lexicon/en.txt")


def tokenizer():
    t = Tokenizer.from_file(str(folder() / "tokenizer.json"))
    t.no_padding()
    t.no_truncation()
    return t


@jax.jit
def update(w, m, v, ids, mask, target, weight, step, rate, head_rate, focus=None):
    """A step of AdamW; norms and biases do not decay."""
    value, grads = jax.value_and_grad(loss)(w, ids, mask, target, weight, focus)
    norm = jnp.sqrt(sum((g * g).sum() for g in grads.values()))
    clip = jnp.minimum(1.0, 1.0 / (norm + 1e-9))
    out = {}, {}, {}
    for k, g in grads.items():
        g = g * clip
        a = 0.9 * m[k] + 0.1 * g
        b = 0.999 * v[k] + 0.001 * g * g
        move = (a / (1 - 0.9**step)) / (jnp.sqrt(b / (1 - 0.999**step)) + 1e-6)
        r = head_rate if k.startswith("head.") else rate
        keep = 1 - r * (0.01 if k.endswith("weight") and "LayerNorm" not in k else 0.0)
        out[0][k], out[1][k], out[2][k] = w[k] * keep - r * move, a, b
    return *out, value


predict = jax.jit(forward)


def auroc(score, truth):
    order = np.argsort(score, kind="stable")
    ranks = np.empty(len(score))
    ranks[order] = np.arange(1, len(score) + 1)
    for s in np.unique(score):  # ties share their rank
        ranks[score == s] = ranks[score == s].mean()
    yes, no = truth.sum(), (~truth).sum()
    return float("nan") if yes == 0 or no == 0 else (ranks[truth].sum() - yes * (yes + 1) / 2) / (yes * no)


def scores(w, ids):
    out = np.zeros((len(ids), len(HEADS) + len(GROUNDS)), np.float32)
    for indexes, length in data.buckets(ids, BATCH):
        x, mask = data.pad(ids, indexes, length, BATCH)
        out[indexes] = np.asarray(jax.nn.sigmoid(predict(w, x, mask)))[: len(indexes)]
    return out


def judge(w, tok, dev):
    s = scores(w, data.encode(tok, [data.normal(r["text"]) for r in dev]))
    said = []
    for h, head in enumerate(HEADS):
        yw = [data.target(r) for r in dev]
        known = np.array([wt[h] >= 1 for _, wt in yw])
        truth = np.array([y[h] >= 0.5 for y, _ in yw])
        if truth[known].any() and not truth[known].all():
            said.append(f"{head} {auroc(s[known, h], truth[known]):.3f} ({truth[known].sum()}/{known.sum()})")
    return ", ".join(said)


def save(path, w, m, v, step, seen):
    flat = {f"{n}/{k}": np.asarray(x) for n, d in (("w", w), ("m", m), ("v", v)) for k, x in d.items()}
    new = path.with_suffix(".new.npz")
    np.savez(new, step=step, seen=seen, **flat)
    os.replace(new, path)


def restore(path):
    z = np.load(path)
    parts = {n: {k.split("/", 1)[1]: z[k] for k in z.files if k.startswith(n + "/")} for n in "wmv"}
    return parts["w"], parts["m"], parts["v"], int(z["step"]), int(z["seen"])


def train(a):
    out = pathlib.Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(out / "compiled"))
    tok, start = tokenizer(), time.monotonic()
    texts, target, weight, dev = data.build(data.read(a.data), lexicon(), a.seed, a.sample)
    ids = data.encode(tok, texts)
    batches = [b for p in range(a.passes) for b in shuffled(ids, a.seed + p)]
    total = len(batches)
    print(f"{len(texts)} texts, {len(dev)} dev texts, {total} batches of {BATCH}; prepared in {time.monotonic() - start:.0f} s", flush=True)
    checkpoint = out / "checkpoint.npz"
    if checkpoint.exists():
        w, m, v, step, seen = restore(checkpoint)
        if seen != len(texts):
            raise SystemExit(f"{checkpoint} was made of {seen} texts, these are {len(texts)}: delete it to begin anew")
        print(f"goes on at batch {step} of {total}", flush=True)
    else:
        w, step = initial(a.seed), 0
        m, v = ({k: np.zeros_like(x) for k, x in w.items()} for _ in range(2))
    every = max(1, min(50, total // 8))
    begun, saved, warm, recent = time.monotonic(), time.monotonic(), None, []
    for step in range(step, total):
        indexes, length = batches[step]
        now = decay(step / total)
        w, m, v, value = update(w, m, v, *batch(ids, target, weight, indexes, length, (a.seed, step)), step + 1.0, now * RATE, now * HEAD_RATE)
        recent.append(float(value))
        now = time.monotonic()
        if step % every == every - 1:
            if warm is None:
                warm = (step, now)  # what was compiled before is no measure of speed
            rate = (step - warm[0]) / max(1e-9, now - warm[1])
            left = f", {rate * BATCH:.0f} texts a second, {(total - step) / rate / 60:.0f} minutes left" if rate > 0 else ""
            print(f"batch {step + 1} of {total}: loss {np.mean(recent[-every:]):.4f}{left}", flush=True)
        if now - saved > a.save_minutes * 60 or now - begun > a.minutes * 60:
            save(checkpoint, w, m, v, step + 1, len(texts))
            saved = now
        if now - begun > a.minutes * 60:
            print(f"the time is over at batch {step + 1} of {total}; the same command goes on from there", flush=True)
            return
    save(checkpoint, w, m, v, total, len(texts))
    print("dev AUROC: " + judge(w, tok, dev), flush=True)
    (out / "done").touch()


def decay(done):
    """What is left of the learning rate after a share of the steps: up at first, then evenly down."""
    return max(1e-3, min(1.0, done / WARM if done < WARM else 1.02 - (done - WARM) / (1 - WARM)))


def batch(ids, target, weight, indexes, length, seed):
    """Ids, some of them masked, mask, targets and weights of a batch, filled up to BATCH."""
    x, mask = data.pad(ids, indexes, length, BATCH)
    x = np.where((np.random.default_rng(seed).random(x.shape) < MASKED) & mask & (x > 103), MASK, x)
    y, wt = (np.zeros((BATCH, target.shape[1]), np.float32) for _ in range(2))
    y[: len(indexes)], wt[: len(indexes)] = target[indexes], weight[indexes]
    return x, mask, y, wt


def shuffled(ids, seed):
    rng = np.random.default_rng(seed)
    batches = data.buckets(ids, BATCH, rng)
    rng.shuffle(batches)
    return batches


def label(a):
    out = pathlib.Path(a.out)
    jax.config.update("jax_compilation_cache_dir", str(out / "compiled"))
    w, _, _, step, _ = restore(out / "checkpoint.npz")
    texts = templates.texts(data.read(a.data), lexicon(), a.seed, a.count)
    begun, written, tok = time.monotonic(), 0, tokenizer()
    new = pathlib.Path(a.labels + ".new")
    with new.open("w", encoding="utf-8") as f:
        for at in range(0, len(texts), 4096):
            part = texts[at : at + 4096]
            s = scores(w, data.encode(tok, [t for t, _ in part]))
            for (text, source), row in zip(part, s):
                said = {h: round(float(p), 4) for h, p in zip(HEADS, row)}
                line = {"id": f"teacher-{written:06d}", "text": text, "label": {}, "source": source, "split": "train", "teacher": said}
                if said["bias"] > 0.5:
                    line["characteristic"] = [g for g, p in zip(GROUNDS, row[len(HEADS) :]) if p > 0.5] or None
                f.write(json.dumps(line, ensure_ascii=False) + "\n")
                written += 1
            rate = written / (time.monotonic() - begun)
            print(f"{written} of {len(texts)} labelled, {rate:.0f} a second, {(len(texts) - written) / rate / 60:.0f} minutes left", flush=True)
    os.replace(new, a.labels)
    print(f"{written} texts labelled by the teacher of {step} batches: {a.labels}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["train", "label"])
    p.add_argument("data", nargs="+")
    p.add_argument("--out", default="build/teacher")
    p.add_argument("--labels", default="build/teacher/labels.jsonl")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--passes", type=int, default=2)
    p.add_argument("--minutes", type=float, default=120, help="stop, with a checkpoint, after so long")
    p.add_argument("--save-minutes", type=float, default=5)
    p.add_argument("--sample", type=int, default=0, help="only so many rows, to try it out")
    p.add_argument("--count", type=int, default=300_000)
    a = p.parse_args()
    train(a) if a.what == "train" else label(a)


if __name__ == "__main__":
    main()
