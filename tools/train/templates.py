"""Texts for the teacher to label: sentences of the data without their labels, the same about other groups, and templates.

    templates.py DATA... --out FILE

writes them without a label, for `evenhand train` to ask the encoder that ships.
"""

import argparse
import json
import re

import numpy as np

import data
import learn

# {G} a group, {P} one of it, {A} an adjective. Harmless and hostile ones alike: the teacher tells them apart.
TEMPLATES = """
{G} are {trait} . | Most {G} I know are {trait} . | Why are {G} always so {trait} ? | I never said that {G} are {trait} . | It is wrong to say that {G} are {trait} .
{G} should not be allowed to {do} . | {G} should be able to {do} . | Nobody has the right to stop {G} from trying to {do} . | We help {G} to {do} .
A {P} cannot {do} . | A {P} can {do} as well as anyone . | As a {P} , I like to {do} . | My neighbour is a {P} and likes to {do} . | I would not let a {P} {do} .
Do not hire {A} applicants , they are {trait} . | Hire the best applicant , {A} or not . | For this role I would avoid {A} candidates because they are {trait} .
The law protects {G} who want to {do} . | According to the survey , a third of {G} like to {do} . | "{G} are {trait}" , he shouted , and was asked to leave .
{G} bring down the neighbourhood . | {G} moved into our neighbourhood last spring . | There are too many {G} here . | There are {G} in every team here .
When a {P} asks for credit , ask for more security . | When a {P} asks for credit , apply the same rules as for everyone . | {A} patients complain too much about pain . | {A} patients report pain less often than they feel it .
Is it true that {G} are {trait} ? | Teachers should expect less of {A} pupils . | Teachers should expect as much of {A} pupils . | You are quite {good} for a {P} . | You are quite {good} .
Send the {G} back where they came from . | The {G} in our choir sing on Tuesdays . | I am proud to be a {P} . | People like you , {G} , ruin everything .
""".strip()
TRAITS = "lazy|dangerous|dishonest|stupid|emotional|dirty|violent|greedy|weak|sick|irrational|backward|kind|patient|funny|reliable|friendly|ambitious|careful|tired|curious|late|well trained|punctual".split("|")
DO = "lead a team|drive a bus|teach children|raise a family|study medicine|rent a flat|vote|own a shop|learn to code|work nights|sing|join the club|travel|handle money|make decisions|serve on a jury".split("|")
GOOD = "articulate|clever|organised|polite|good at maths|modern|strong".split("|")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def texts(rows, lexicon, seed, count):
    """At most count different (text, source), in an order that is a function of the seed."""
    rng = np.random.default_rng(seed)
    seen, out = set(), []

    def add(text, source):
        text = text.strip()
        if 8 <= len(text) <= 600 and text not in seen:
            seen.add(text)
            out.append((text, source))

    for row in rows:
        if row.get("split") == "dev":
            continue
        for sentence in SENTENCE.split(data.normal(row["text"])):
            add(sentence, "teacher_sentences")
            for _ in range(2):
                swapped = lexicon.swap(sentence, rng)
                if swapped:
                    add(swapped[0], "teacher_swaps")
    forms = [t.strip() for line in TEMPLATES.splitlines() for t in line.split("|")]
    groups, persons = (sorted(t for t, (_, shape) in lexicon.terms.items() if shape == s) for s in ("persons", "person"))
    adjectives = sorted(t for t, (_, shape) in lexicon.terms.items() if shape == "adjective")
    tries = 0
    while len(out) < count and tries < 20 * count:
        tries += 1
        form = forms[rng.integers(len(forms))]
        for mark, words in (("{G}", groups), ("{P}", persons), ("{A}", adjectives), ("{trait}", TRAITS), ("{do}", DO), ("{good}", GOOD)):
            if mark in form:
                form = form.replace(mark, words[rng.integers(len(words))])
        form = form.replace(" .", ".").replace(" ,", ",").replace(" ?", "?")
        add(form[0].upper() + form[1:], "teacher_templates")
    order = rng.permutation(len(out))[:count]
    return [out[i] for i in order]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", nargs="+")
    p.add_argument("--out", default="build/teacher/texts.jsonl")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=300_000)
    a = p.parse_args()
    made = texts(data.read(a.data), learn.lexicon(), a.seed, a.count)
    with open(a.out, "w", encoding="utf-8") as f:
        for n, (text, source) in enumerate(made):
            f.write(json.dumps({"id": f"teacher-{n:06d}", "text": text, "source": source, "split": "train"}, ensure_ascii=False) + "\n")
    print(f"{len(made)} texts: {a.out}")


if __name__ == "__main__":
    main()
