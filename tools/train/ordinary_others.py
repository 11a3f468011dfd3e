"""Writes ordinary sentences in other languages than English: the examples in the grammar rules of LanguageTool (LGPL-2.1), of which nearly
none is biased. Maven fetches its packages.

    ordinary_others.py --out FILE [--left FILE]

A third is of split train, a third, of split dev, calibrates, each of its sentences alone and once more in a passage of eight; --left writes the
last, which nothing is calibrated with either, to judge on, in the same way.
"""

import argparse
import hashlib
import html
import json
import pathlib
import re
import subprocess
import tempfile
import zipfile

LANGUAGES, VERSION = ("de", "es", "fr", "it", "nl", "pl", "pt"), "6.6"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
SHORTEST, LONGEST, MOST = 30, 400, 2000  # characters of a sentence, sentences of a language and split
PASSAGE = 8  # sentences


def fetched(language, folder):
    what = f"org.languagetool:language-{language}:{VERSION}"
    subprocess.run(["mvn", "-q", "-B", COPY, f"-Dartifact={what}", f"-DoutputDirectory={folder}"], check=True)
    return zipfile.ZipFile(folder / f"language-{language}-{VERSION}.jar")


def sentences(package):
    """Examples of its rules, in the order of their digests."""
    out = set()
    for name in package.namelist():
        if name.endswith(".xml") and "/rules/" in name:
            rules = re.sub(r"<!--.*?-->", "", package.read(name).decode("utf-8", "ignore"), flags=re.S)
            for example in re.findall(r"<example[^>]*>(.*?)</example>", rules, flags=re.S):
                text = " ".join(html.unescape(re.sub(r"<[^>]*>", "", example)).split())
                if SHORTEST <= len(text) <= LONGEST and text[-1] in ".!?":
                    out.add(text)
    return sorted(out, key=lambda t: hashlib.sha256(t.encode()).digest())


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
            texts = sentences(fetched(language, pathlib.Path(folder)))
            third = min(len(texts) // 3, MOST)
            train, dev, rest = (texts[n * third : (n + 1) * third] for n in range(3))
            row = lambda i, text: {"id": f"{language}/{i}", "text": text, "lang": language}
            label = lambda split: {"label": {"bias": 0}, "split": split, "source": "languagetool"}
            rows += [row(i, t) | label("train") for i, t in enumerate(train)]
            rows += [row(third + i, t) | label("dev") for i, t in enumerate(dev + passages(dev))]
            left += [row(3 * third + i, t) for i, t in enumerate(rest + passages(rest))]
    for path, some in ((a.out, rows), (a.left, left)):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in some), encoding="utf-8")
    print(f"{len(rows)} texts, {len(left)} left")


if __name__ == "__main__":
    main()
