"""presidio-analyzer with its pattern recognizers and a blank spaCy model: personal data only, no names."""

import cpu


def make(_):
    import spacy
    import tldextract

    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())  # nothing is fetched: the list that came with it
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    class Blank(SpacyNlpEngine):
        def __init__(self):
            super().__init__()
            self.nlp = {"en": spacy.blank("en")}

        def load(self):
            pass

    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    for recognizer in list(registry.recognizers):
        if "Spacy" in type(recognizer).__name__:
            registry.recognizers.remove(recognizer)
    engine = AnalyzerEngine(registry=registry, nlp_engine=Blank(), supported_languages=["en"])
    return lambda text: len(engine.analyze(text=text, language="en"))


cpu.serve("presidio-analyzer 2.2.366, patterns only", make)
