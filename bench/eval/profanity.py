"""alt-profanity-check (a linear model over words): predictions for `evenhand eval --predictions`."""

from profanity_check import predict_prob
from rows import run

run(lambda texts: ((p, p >= 0.5) for p in predict_prob(texts)))
