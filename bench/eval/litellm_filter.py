"""LiteLLM's content filter with its bias categories, as its proxy runs it: predictions for `evenhand eval --predictions`.
It blocks or it does not, so the score is 1 or 0."""

import logging
import os
import pathlib

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no calls to anywhere
logging.disable(logging.CRITICAL)  # it logs what it matched

import litellm.proxy.guardrails as guardrails
from fastapi import HTTPException
from litellm.proxy.guardrails.guardrail_hooks.litellm_content_filter.content_filter import ContentFilterGuardrail
from rows import run

names = sorted(p.stem for p in (pathlib.Path(guardrails.__path__[0]) / "content_filter_data/categories").glob("*.yaml"))
wanted = [n for n in names if n.startswith("bias_") or n in ("age_discrimination", "disability")]
guard = ContentFilterGuardrail(
    guardrail_name="bias",
    categories=[{"category": n, "enabled": True, "action": "BLOCK", "severity_threshold": "medium"} for n in wanted],
)


def blocked(text):
    try:
        guard._filter_single_text(text, detections=[])
    except HTTPException:
        return True
    return False


def score(texts):
    for text in texts:
        b = blocked(text)
        yield float(b), b


run(score)
