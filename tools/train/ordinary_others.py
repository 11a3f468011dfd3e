"""Writes ordinary sentences in other languages than English: the examples in the grammar rules of LanguageTool (LGPL-2.1), of which nearly
none is biased. Maven fetches its packages.

    ordinary_others.py --out FILE [--left FILE]

A third of the rules gives the split train, a third the split dev, which calibrates, each of its sentences alone and once more in a passage of
eight; --left writes the last, which nothing is calibrated with either, to judge on, in the same way.
"""

import argparse
import hashlib
import html
import itertools
import json
import pathlib
import re
import subprocess
import tempfile
import zipfile

from e5 import LANGUAGES

VERSION = "6.6"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
SHORTEST, LONGEST, MOST = 30, 400, 2000  # characters of a sentence, sentences of a language and split
PASSAGE = 8  # sentences


def fetched(language, folder):
    what = f"org.languagetool:language-{language}:{VERSION}"
    subprocess.run(["mvn", "-q", "-B", COPY, f"-Dartifact={what}", f"-DoutputDirectory={folder}"], check=True)
    return zipfile.ZipFile(folder / f"language-{language}-{VERSION}.jar")


def digest(text):
    return hashlib.sha256(text.encode()).digest()


def sentences(package):
    """Examples of its rules in three parts, each in the order of their digests. Those of one rule, which are much alike, are in one part."""
    out, seen = ([], [], []), set()
    for name in package.namelist():
        if not name.endswith(".xml") or "/rules/" not in name:
            continue
        rules = re.sub(r"<!--.*?-->", "", package.read(name).decode("utf-8", "ignore"), flags=re.S)
        for rule in re.findall(r"<rulegroup\b.*?</rulegroup>|<rule\b.*?</rule>", rules, flags=re.S):
            examples = re.findall(r"<example[^>]*>(.*?)</example>", rule, flags=re.S)
            texts = [" ".join(html.unescape(re.sub(r"<[^>]*>", "", e)).split()) for e in examples]
            for text in texts:
                if SHORTEST <= len(text) <= LONGEST and text[-1] in ".!?" and text not in seen:
                    seen.add(text)
                    out[digest(texts[0])[0] % 3].append(text)
    return [sorted(part, key=digest)[:MOST] for part in out]


def passages(texts):
    return [" ".join(texts[i : i + PASSAGE]) for i in range(0, len(texts), PASSAGE)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, type=pathlib.Path)
    p.add_argument("--left", type=pathlib.Path)
    a = p.parse_args()
    rows, left = [], []
    with tempfile.TemporaryDirectory() as folder:
        for language in LANGUAGES:
            train, dev, rest = sentences(fetched(language, pathlib.Path(folder)))
            dev, rest = dev + passages(dev), rest + passages(rest)
            ids = (f"{language}/{i}" for i in itertools.count())
            row = lambda text: {"id": next(ids), "text": text, "lang": language}
            label = lambda split: {"label": {"bias": 0}, "split": split, "source": "languagetool"}
            rows += [row(t) | label("train") for t in train]
            rows += [row(t) | label("dev") for t in dev]
            left += [row(t) for t in rest]
    for path, some in ((a.out, rows), (a.left, left)):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in some), encoding="utf-8")
    print(f"{len(rows)} texts, {len(left)} left")


if __name__ == "__main__":
    main()
