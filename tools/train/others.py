"""Fine-tunes the encoder of other languages than English: multilingual E5 (e5.py) on the rows of DATA in all languages.

    others.py DATA... --ordinary FILE --ordinary-others FILE --out DIR [--further FILE] [--passages] [--sample N] [--new FILE...]

writes DIR/others.npz and DIR/others.txt, the vocabulary: a piece and its score a line. What bias and harm are it learns mostly in English,
of which there are many times more rows, and how the other languages say it from theirs. Embeddings and the first layers stay as they are: they
hold what the languages share. --further goes on from an encoder that was trained so, at a lower rate, and keeps its vocabulary: another pass,
over what came to the data since, too: of that, the files --new, nothing is left out by --sample, and each text is learnt several times. --passages
has it learn that what stands around a sentence changes nothing. A checkpoint is written every few minutes and gone on from.
"""

import argparse
import pathlib

import numpy as np

import data
import e5
import export
import items
import learn
from model import HEADS, Encoder

RATE, HEAD_RATE = 8e-5, 1e-3
LATER = 0.6  # of these rates, in another pass
FROZEN = 3  # of the layers
TIMES = 2  # that a text of another language is learnt alone
NEW = 3  # that items of new texts are
AMONG = 0.25  # of our English texts, once more among others
PASSAGES = 0.6  # of them in a pass over passages
PUBLIC = 8_000  # English texts of public sets
ORDINARY = 1.5  # what a sentence of ordinary text counts


def other(rows, ordinary, language, seed, passages):
    """Items of another language, mostly passages or mostly texts alone, and the rows of dev."""
    texts, target, weight, dev = data.build(rows, learn.lexicon(language), seed)
    harmless = [s for t, y in zip(texts, target) if not y[: len(HEADS)].any() for s in items.parts(t) if items.sentence(s)]
    around = [s for t in ordinary for s in items.parts(t) if items.sentence(s)] if passages else ordinary
    make = items.Maker(np.random.default_rng(seed), around, harmless)
    if passages:
        make.surrounded(texts, target, weight)
    else:
        make.labelled(texts, target, weight)
        for _ in range(TIMES - 1):
            for text, y, w in zip(texts, target, weight):
                make.add([], text, [], y, w)
    for text, y in zip(texts, target):
        if not y.any() and len(sentences := items.parts(text)) > 1:
            make.ordinary(sentences, ORDINARY)
    for text in ordinary:
        sentences = items.parts(text)
        if passages and len(sentences) > 1:
            make.ordinary(sentences, ORDINARY)
        else:
            make.add([], text, [], *items.no(ORDINARY))
    return make.items, dev


def english(rows, ordinary, seed, among):
    """Items of English texts: ours, and a share of the public ones."""
    texts, target, weight, dev = data.build(rows, learn.lexicon(), seed)
    rng = np.random.default_rng(seed)
    own = weight.max(1) >= data.OWN
    fresh = [p for r in data.read([ordinary]) if r["split"] == "train" and (p := items.parts(data.normal(r["text"])))]
    harmless = [t for t, y, o in zip(texts, target, own) if o and not y[: len(HEADS)].any() and items.sentence(t)]
    make = items.Maker(rng, [s for p in fresh for s in p if items.sentence(s)], harmless)
    for i in np.flatnonzero(own):
        make.add([], texts[i], [], target[i], weight[i])
        if rng.random() < among and len(texts[i]) < 250:
            make.among(texts[i], target[i], weight[i])
    for i in rng.permutation(np.flatnonzero(~own))[:PUBLIC]:
        make.add([], texts[i], [], target[i], weight[i])
    for i in rng.permutation(len(fresh))[: PUBLIC // 3]:
        make.ordinary(fresh[i], ORDINARY)
    return make.items, dev


def unknown(files, seed):
    """Items of files of new texts, in whatever language."""
    rows, made = list(data.read(files, lambda row: True)), []
    for language in sorted({r["lang"] for r in rows}):
        texts, target, weight, _ = data.build([r for r in rows if r["lang"] == language], learn.lexicon(language), seed)
        harmless = [t for t, y in zip(texts, target) if not y[: len(HEADS)].any() and items.sentence(t)]
        make = items.Maker(np.random.default_rng(seed), harmless, harmless)
        make.labelled(texts, target, weight)
        print(f"{len(make.items)} new ones of {language}", flush=True)
        made += make.items
    return made


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", nargs="+")
    p.add_argument("--ordinary", required=True, help="what ordinary.py writes")
    p.add_argument("--ordinary-others", required=True, help="what ordinary_others.py writes")
    p.add_argument("--further", help="an encoder that export.py wrote")
    p.add_argument("--passages", action="store_true", help="learn mostly from texts among others: a pass after one over texts alone")
    p.add_argument("--out", default="build/teacher")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--sample", type=int, default=0, help="only so many items")
    p.add_argument("--new", nargs="*", default=[], help="files of DATA whose rows it has not learnt from")
    a = p.parse_args()
    out = pathlib.Path(a.out)
    rows = list(data.read(a.data, lambda row: True))
    ordinary = [r for r in data.read([a.ordinary_others], lambda row: row["split"] == "train")]
    made, dev = english([r for r in rows if data.english(r)], a.ordinary, a.seed, PASSAGES if a.passages else AMONG)
    print(f"{len(made)} items of English texts", flush=True)
    for language in e5.LANGUAGES:
        of = lambda rows: [r for r in rows if r.get("lang") == language]
        more, kept = other(of(rows), [data.normal(r["text"]) for r in of(ordinary)], language, a.seed, a.passages)
        print(f"{len(more)} of {language}", flush=True)
        made, dev = made + more, dev + kept
    if a.further:
        weights, pieces = export.load(a.further), e5.scored(export.vocabulary(a.further))
    else:
        file = e5.file()
        stay = e5.chosen(file, [data.normal(r["text"]) for r in rows if not r["source"].startswith("unseen")])
        weights, pieces = e5.initial(file, stay, a.seed), [(file.pieces[i], float(file.scores[i])) for i in stay]
    (out / "others.txt").write_text("\n".join(f"{p}\t{s:.9g}" for p, s in pieces), encoding="utf-8")
    tok = e5.tokenizer(pieces)
    if a.sample:
        made = [made[i] for i in np.random.default_rng(a.seed).permutation(len(made))[: a.sample]]
    made += unknown(a.new, a.seed) * NEW
    ids, focus = items.encode(tok, made)
    target, weight = np.stack([x.target for x in made]), np.stack([x.weight for x in made])
    batches = learn.shuffled(ids, a.seed)
    print(f"{len(made)} items, {len(pieces)} pieces, {len(batches)} batches of {learn.BATCH}", flush=True)
    model, slower = Encoder(weights), LATER if a.further else 1
    model.freeze(FROZEN)
    learn.learn(model, tok, ids, focus, batches, lambda i: (target[i], weight[i], None), slower * RATE, slower * HEAD_RATE, a.seed, out / "others.pt")
    learn.save(out / "others.npz", model)
    (out / "others.pt").unlink(missing_ok=True)
    for language in e5.LANGUAGES:
        print(f"{language}: dev AUROC: " + learn.judge(model, tok, [r for r in dev if r.get("lang") == language]), flush=True)
    print("English: dev AUROC: " + learn.judge(model, tok, [r for r in dev if data.english(r) and data.weigh(r, False) >= data.OWN]), flush=True)


if __name__ == "__main__":
    main()
