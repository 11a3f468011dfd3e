"""llm-guard's Regex scanner with all rules. It stops at the first rule that matches.

Its package imports torch and transformers, which this scanner does not use; they are stubs here.
"""

import logging
import sys
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock

import cpu


class Stub(MagicMock):
    """Any name below a stubbed package is there."""

    __path__ = []


class Finder:
    names = ("torch", "transformers", "optimum", "onnxruntime", "huggingface_hub", "bc_detect_secrets", "detect_secrets",
             "faker", "fuzzysearch", "json_repair", "nltk", "tiktoken", "presidio_analyzer", "spacy")

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.names else None

    def create_module(self, spec):
        return Stub(name=spec.name)

    def exec_module(self, module):
        pass


def make(rules):
    sys.meta_path.insert(0, Finder())
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    from llm_guard.input_scanners.regex import Regex

    scanner = Regex(["(?i)" + rule for rule in rules])
    return lambda text: 0 if scanner.scan(text)[1] else 1


cpu.serve("llm-guard 0.3.16, Regex scanner", make)
