"""Takes the encoder that ships further: it learns from texts that came after it, and keeps what it knows.

    further.py DATA... --new FILE... --ordinary FILE --out DIR [--encoder detectors/classifier/encoder/model.bin] [--was SHARE [--again]]

Between two whole runs (teacher.py, student.py), which take hours. Of each new text it learns the text and, where it is harmless, every sentence
of it, alone and in its passage; but not of --together, where "Myth: …" is harmless for what comes after it alone. Beside these it learns a sample of everything else, of which it is wanted to say what it said before, and what the label says.
In the end weights are taken between what they were and what they became (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models"): that
forgets less of what the sample does not show. With --again another share is taken of what was learnt last; --encoder is the one of before.
"""

import argparse
import pathlib

import numpy as np

import data
import export
import items
import learn
from model import Encoder

RATE, HEAD_RATE = 3e-5, 2e-4
TIMES = 2  # that a new text is learnt
WAS = 0.25  # the share of the former weights in the end, where none is said


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", nargs="+")
    p.add_argument("--new", nargs="+", required=True, help="files of DATA whose rows it has not learnt from")
    p.add_argument("--together", nargs="+", default=[], help="files, too, whose sentences are harmless only beside each other")
    p.add_argument("--ordinary", required=True, help="what ordinary.py writes")
    p.add_argument("--encoder", default="detectors/classifier/encoder/model.bin")
    p.add_argument("--out", default="build/teacher")
    p.add_argument("--name", default="student")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--others", type=int, default=60_000, help="items of everything else")
    p.add_argument("--was", type=float, default=WAS, help="the share of the former weights in the end")
    p.add_argument("--again", action="store_true", help="only take weights between anew, of what was learnt before")
    p.add_argument("--sample", type=int, default=0, help="only so many rows, to try it out")
    a = p.parse_args()
    out, was = pathlib.Path(a.out), export.load(a.encoder)
    learnt = out / f"{a.name}.learnt.npz"
    if a.again:
        between(a, was, learn.load(learnt), out)
        return
    tok, lexicon = learn.tokenizer(), learn.lexicon()
    make, dev = items.build(a, lexicon)
    others = [make.items[i] for i in np.sort(make.rng.permutation(len(make.items))[: a.others])]
    make.items = []
    for files, apart in ((a.new, True), (a.together, False)):
        if not files:
            continue
        texts, target, weight, _ = data.build(data.read(files), lexicon, a.seed)
        for _ in range(TIMES):
            make.labelled(texts, target, weight)
            for text, y in zip(texts, target):
                if apart and not y.any() and len(sentences := items.parts(text)) > 1:
                    make.each(sentences, data.OWN)
    new = make.items
    ids, focus = items.encode(tok, others + new)
    model = Encoder(was)
    target, weight = learn.distilled(others + new, learn.read(model, ids[: len(others)], focus[: len(others)], told="it has read"))
    batches = learn.shuffled(ids, a.seed)
    print(f"{len(new)} items of new texts, {len(others)} of others, {len(batches)} batches of {learn.BATCH}", flush=True)
    print("dev AUROC before: " + learn.judge(model, tok, dev), flush=True)
    learn.learn(model, tok, ids, focus, batches, lambda i: (target[i], weight[i], None), RATE, HEAD_RATE, a.seed, out / f"{a.name}.pt")
    learn.save(learnt, model)
    (out / f"{a.name}.pt").unlink(missing_ok=True)
    print("dev AUROC: " + learn.judge(between(a, was, model.weights(), out), tok, dev), flush=True)


def between(a, was, learnt, out):
    """Saves and gives the model between what it was and what it learnt, at --was."""
    model = Encoder({name: a.was * was[name] + (1 - a.was) * x for name, x in learnt.items()})
    learn.save(out / f"{a.name}.npz", model)
    return model


if __name__ == "__main__":
    main()
