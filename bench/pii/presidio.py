#!/usr/bin/env python3
"""Recall and false positives of presidio-analyzer on detectors/pii/testdata/formats.jsonl: its shipped
recognisers of all languages, a blank spaCy model (no names are asked for). False positives count only of the
entities that the file holds. Thresholds: 0, its own default, and 0.35.

Run:  python3 -m venv venv && venv/bin/pip install presidio-analyzer==2.2.366
      venv/bin/python bench/pii/presidio.py detectors/pii/testdata/formats.jsonl
"""
import collections, json, sys, time

import spacy
from presidio_analyzer import AnalyzerEngine, LocalRecognizer, PatternRecognizer, RecognizerRegistry
from presidio_analyzer import predefined_recognizers as shipped
from presidio_analyzer.nlp_engine import SpacyNlpEngine

# What each of our entities is called there; one that it does not know counts as missed.
THEIRS = {
    "CREDIT_CARD": "CREDIT_CARD", "IBAN": "IBAN_CODE", "US_SSN": "US_SSN", "US_ITIN": "US_ITIN", "EMAIL": "EMAIL_ADDRESS", "PHONE": "PHONE_NUMBER", "IP_ADDRESS": "IP_ADDRESS",
    "MAC_ADDRESS": "MAC_ADDRESS", "CRYPTO_WALLET": "CRYPTO", "DATE_OF_BIRTH": "DATE_TIME", "PASSPORT": "US_PASSPORT UK_PASSPORT IT_PASSPORT ES_PASSPORT DE_PASSPORT", "DRIVER_LICENCE": "US_DRIVER_LICENSE IT_DRIVER_LICENSE DE_FUEHRERSCHEIN UK_DRIVING_LICENCE",
    "ES_NIF": "ES_NIF ES_NIE", "IT_FISCAL_CODE": "IT_FISCAL_CODE", "PL_PESEL": "PL_PESEL", "FI_HETU": "FI_PERSONAL_IDENTITY_CODE", "UK_NHS": "UK_NHS", "UK_NINO": "UK_NINO",
    "DE_TAX_ID": "DE_TAX_ID", "DE_ID_CARD": "DE_ID_CARD", "SE_PERSONNUMMER": "SE_PERSONNUMMER",
}


class Blank(SpacyNlpEngine):
    """A tokenizer without a model."""

    def __init__(self):
        super().__init__()
        self.nlp = {"en": spacy.blank("en")}


def engine():
    registry, names = RecognizerRegistry(supported_languages=["en"]), []
    for name in sorted(dir(shipped)):
        cls = getattr(shipped, name)
        if not isinstance(cls, type) or not issubclass(cls, LocalRecognizer) or cls in (LocalRecognizer, PatternRecognizer):
            continue
        if any(w in name for w in ("Spacy", "Stanza", "Transformers", "GLiNER", "Gliner", "LLM", "Langextract", "LangExtract", "Azure", "Medical", "HuggingFace")):
            continue
        try:
            r = cls(supported_language="en")  # those of other languages read the same text
            r.analyze("x", r.supported_entities, None)
        except Exception as e:  # noqa: BLE001 - a recogniser that needs a service is left out
            print("left out:", name, type(e).__name__, file=sys.stderr)
            continue
        registry.add_recognizer(r)
        names.append(name)
    return AnalyzerEngine(registry=registry, nlp_engine=Blank(), supported_languages=["en"]), names


def main(path):
    a, names = engine()
    print(len(names), "recognisers", file=sys.stderr)
    lines = [json.loads(l) for l in open(path, encoding="utf-8")]
    known = {name for names in THEIRS.values() for name in names.split()}
    for threshold in (0, 0.35):
        found, of, alike, wrong, kinds = collections.Counter(), collections.Counter(), 0, 0, collections.Counter()
        begin = time.process_time()
        for d in lines:
            got = {r.entity_type for r in a.analyze(d["text"], language="en", score_threshold=threshold)} & known
            if d["pii"]:
                of[d["entity"]] += 1
                found[d["entity"]] += bool(got & set(THEIRS.get(d["entity"], "").split()))
            else:
                got -= {"DATE_TIME"}  # any date, which is right
                alike += 1
                wrong += bool(got)
                kinds.update(got)
        seconds = time.process_time() - begin
        n, m = sum(of.values()), sum(of[e] for e in THEIRS)
        print(f"threshold {threshold}: recall {sum(found.values())/n:.3f} of {n}, of the kinds it has {sum(found[e] for e in THEIRS)/m:.3f} of {m}; false positives {wrong/alike:.3f} of {alike}; {seconds/len(lines)*1e3:.2f} ms a text")
        for e in sorted(of):
            print(f"  {e:16} {found[e]/of[e]:.2f} of {of[e]}")
        print("  false positives by kind:", kinds.most_common(8))


main(sys.argv[1])
