"""Batches, steps and checkpoints: what teacher.py and student.py share."""

import os
import pathlib
import time

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional

import data
import items
from model import GROUNDS, HEADS, OUTPUTS, WIDTH, bfloat16, folder

BATCH, MASKED, WARM = 64, 0.06, 0.06
EARLY = 0.3  # what an early exit counts
BELIEVE, BELIEVE_OWN = 0.7, 0.4  # another model's share of a target beside a label: of others' rows, of ours
SAID = 0.5  # what an item without a label counts


def lexicon(language="en"):
    return data.Lexicon(pathlib.Path(__file__).parents[2] / f"detectors/classifier/lexicon/{language}.txt")


def tokenizer():
    t = Tokenizer.from_file(str(folder() / "tokenizer.json"))
    t.no_padding()
    t.no_truncation()
    return t


def tensors(ids, focus, indexes, length):
    """Ids, mask and focus of a batch."""
    x, mask = data.pad(ids, indexes, length, len(indexes))
    of = np.zeros(mask.shape, bool)
    for k, i in enumerate(indexes):
        of[k, : len(focus[i])] = focus[i]
    return torch.from_numpy(x).long(), torch.from_numpy(mask), torch.from_numpy(of)


@torch.no_grad()
def read(model, ids, focus, told="", means=False):
    """Logits (items, OUTPUTS) and, if they are asked for, means (items, WIDTH) of what a model reads."""
    out, pooled = np.zeros((len(ids), OUTPUTS), np.float32), np.zeros((len(ids), WIDTH), np.float16) if means else None
    begun, done, due = time.monotonic(), 0, 40_000
    for indexes, length in data.buckets(ids, 128):
        with bfloat16():
            z, p, _ = model(*tensors(ids, focus, indexes, length))
        out[indexes] = z.float().numpy()
        if means:
            pooled[indexes] = p.float().numpy()
        done += len(indexes)
        if told and done >= due:
            due += 40_000
            rate = done / (time.monotonic() - begun)
            print(f"{told} {done} of {len(ids)}, {rate:.0f} a second, {(len(ids) - done) / rate / 60:.0f} minutes left", flush=True)
    return (out, pooled) if means else out


def decay(done):
    """What is left of the learning rate after a share of the steps: up at first, then evenly down."""
    return max(1e-3, min(1.0, done / WARM if done < WARM else 1.02 - (done - WARM) / (1 - WARM)))


def optimizer(model):
    """AdamW; norms and biases do not decay, heads learn at a rate of their own."""
    groups = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        head, plain = name.startswith(("head.", "exits.")), name.endswith("bias") or "norm" in name
        groups.setdefault((head, plain), []).append(p)
    return torch.optim.AdamW(
        [{"params": ps, "head": head, "weight_decay": 0.0 if plain else 0.01} for (head, plain), ps in groups.items()], lr=0.0, eps=1e-6, fused=True
    )


def shuffled(ids, seed):
    rng = np.random.default_rng(seed)
    batches = data.buckets(ids, BATCH, rng)
    rng.shuffle(batches)
    return batches


def entropy(logits, target, weight):
    return (functional.binary_cross_entropy_with_logits(logits.float(), target, reduction="none") * weight).sum() / weight.sum().clamp(min=1.0)


def learn(model, tok, ids, focus, batches, wanted, rate, head_rate, seed, checkpoint=None):
    """Takes the model through batches. wanted gives, of indexes, targets and weights (n, OUTPUTS) and means (n, WIDTH) or None. The order
    is a function of seed and step alone; a checkpoint is written every few minutes and gone on from."""
    opt, begin, total = optimizer(model), 0, len(batches)
    first, last, hidden = items.marks(tok)
    if checkpoint and checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        begin = state["step"]
        print(f"goes on at batch {begin} of {total}", flush=True)
    begun = saved = time.monotonic()
    recent = []
    for step in range(begin, total):
        indexes, length = batches[step]
        now = decay(step / total)
        for g in opt.param_groups:
            g["lr"] = now * (head_rate if g["head"] else rate)
        x, mask, of = tensors(ids, focus, indexes, length)
        drop = torch.from_numpy(np.random.default_rng((seed, step)).random(x.shape) < MASKED)
        x = torch.where(drop & mask & (x != first) & (x != last), hidden, x)
        y, wt, means = wanted(indexes)
        with bfloat16():
            z, pooled, early = model(x, mask, of)
        y, wt = torch.from_numpy(y), torch.from_numpy(wt)
        loss = entropy(z, y, wt)
        for e in early:
            loss = loss + EARLY * entropy(e, y[:, : len(HEADS)], wt[:, : len(HEADS)])
        if means is not None:
            loss = loss + functional.mse_loss(pooled, torch.from_numpy(means.astype(np.float32)))
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
        opt.step()
        opt.zero_grad()
        recent.append(loss.item())
        if step % 200 == 199:
            took = time.monotonic() - begun
            print(f"batch {step + 1} of {total}: loss {np.mean(recent):.4f}, {(step + 1 - begin) * BATCH / took:.0f} items a second, {(total - step) * took / (step + 1 - begin) / 60:.0f} minutes left", flush=True)
            recent = []
        if checkpoint and time.monotonic() - saved > 240:
            new = checkpoint.with_suffix(".new")
            torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step + 1}, new)
            os.replace(new, checkpoint)
            saved = time.monotonic()


def distilled(made, logits):
    """Targets and weights (items, OUTPUTS) of items of which another model said logits, beside what their labels say. Of items beyond
    these the label holds alone."""
    target, weight = np.stack([x.target for x in made]), np.stack([x.weight for x in made])
    of, said = slice(0, len(logits)), 1 / (1 + np.exp(-logits))
    share = np.where(weight[of].max(1) >= data.OWN, BELIEVE_OWN, BELIEVE)[:, None]
    target[of] = np.where(weight[of] > 0, share * said + (1 - share) * target[of], said)
    weight[of] = np.maximum(weight[of], SAID)
    weight[:, len(HEADS) :] *= 0.3
    return target, weight


def save(path, model):
    new = path.with_suffix(".new.npz")
    np.savez(new, **model.weights())
    os.replace(new, path)


def load(path):
    z = np.load(path)
    return {k: z[k] for k in z.files}


def auroc(score, truth):
    order = np.argsort(score, kind="stable")
    ranks = np.empty(len(score))
    ranks[order] = np.arange(1, len(score) + 1)
    for s in np.unique(score):  # ties share their rank
        ranks[score == s] = ranks[score == s].mean()
    yes, no = truth.sum(), (~truth).sum()
    return float("nan") if yes == 0 or no == 0 else (ranks[truth].sum() - yes * (yes + 1) / 2) / (yes * no)


def judge(model, tok, dev):
    """AUROC of each head over the rows of dev, and over those of each of our own files."""
    s = read(model, *items.encode(tok, items.alone([data.normal(r["text"]) for r in dev])))
    said = []
    for h, head in enumerate(HEADS):
        yw = [data.target(r) for r in dev]
        known = np.array([wt[h] >= 1 for _, wt in yw])
        truth = np.array([y[h] >= 0.5 for y, _ in yw])
        if truth[known].any() and not truth[known].all():
            said.append(f"{head} {auroc(s[known, h], truth[known]):.3f} ({truth[known].sum()}/{known.sum()})")
    for source in sorted({r["source"] for r in dev}):
        mine = np.array([r["source"] == source and data.target(r)[1][0] >= 1 for r in dev])
        truth = np.array([data.target(r)[0][0] >= 0.5 for r in dev])[mine]
        if truth.any() and not truth.all():
            z, cut = s[mine, 0], int(0.03 * (~truth).sum())
            at = np.sort(z[~truth])[::-1][cut]
            said.append(f"\n  bias of {source} {auroc(z, truth):.3f}, recall at .03 {(z[truth] > at).mean():.3f}")
    return ", ".join(said)
