"""Reads labelled JSONL and writes predictions for `evenhand eval --predictions`."""

import argparse
import json
import pathlib
import sys


def run(score):
    """score(texts) gives (score, flag) of each; rows of the chosen split are answered on stdout."""
    p = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    p.add_argument("data", nargs="+", help="labelled JSONL files or folders of them")
    p.add_argument("--split", default="dev", choices=["dev", "train", "all"])
    a = p.parse_args()
    rows = []
    for path in map(pathlib.Path, a.data):
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            rows += map(json.loads, file.open(encoding="utf-8"))
    rows = [r for r in rows if a.split in ("all", r.get("split") or "train")]
    for row, (s, flag) in zip(rows, score([r["text"] for r in rows])):
        print(json.dumps({"id": row["id"], "score": round(float(s), 6), "flag": bool(flag)}))
