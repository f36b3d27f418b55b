#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden trajectories that README.md describes.

  generate.py FOLDER [MODEL ...]        MODEL: mlp_tiny, cnn_tiny, gpt2_tiny, llama_tiny; all without it

Everything is float64. Needs PyTorch; random numbers are those of torch's CPU generator.
"""
import argparse
import json
import math
import os
import struct

import torch
import torch.nn.functional as F
from torch import nn

TYPE_NAMES = {torch.float64: "F64", torch.int64: "I64"}


def save_safetensors(path, tensors, metadata):
    header = {"__metadata__": {key: str(value) for key, value in metadata.items()}}
    payload = bytearray()
    for name, tensor in tensors.items():
        data = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": TYPE_NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(payload), len(payload) + len(data)]}
        payload += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + payload)


class Named(nn.Module):
    """A model whose parameters have names with dots, which torch refuses for attributes."""

    def __init__(self, parameters):
        super().__init__()
        self.table = nn.ParameterDict({name.replace(".", "|"): nn.Parameter(value) for name, value in parameters.items()})

    def __getitem__(self, name):
        return self.table[name.replace(".", "|")]

    def all_parameters(self):
        return {name.replace("|", "."): value for name, value in self.table.items()}


class Gpt2(Named):
    """Weights of linear layers are (in, out), as in Hugging Face's Conv1D."""

    def __init__(self, vocabulary, sequence, width, heads, layers):
        self.sizes = width, heads, layers
        p = {"wte.weight": 0.02 * torch.randn(vocabulary, width), "wpe.weight": 0.01 * torch.randn(sequence, width)}
        linears = (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width), ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width))
        for i in range(layers):
            for norm in ("ln_1", "ln_2"):
                p[f"h.{i}.{norm}.weight"] = 1 + 0.1 * torch.randn(width)
                p[f"h.{i}.{norm}.bias"] = 0.1 * torch.randn(width)
            for name, inputs, outputs in linears:
                p[f"h.{i}.{name}.weight"] = 0.15 * torch.randn(inputs, outputs)
                p[f"h.{i}.{name}.bias"] = 0.05 * torch.randn(outputs)
        p["ln_f.weight"] = 1 + 0.1 * torch.randn(width)
        p["ln_f.bias"] = 0.1 * torch.randn(width)
        super().__init__(p)

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self[name + ".weight"], self[name + ".bias"], 1e-5)

    def linear(self, x, name):
        return x @ self[name + ".weight"] + self[name + ".bias"]

    def forward(self, tokens):
        width, heads, layers = self.sizes
        batch, length = tokens.shape
        x = self["wte.weight"][tokens] + self["wpe.weight"][:length]
        allowed = torch.tril(torch.ones(length, length, dtype=torch.bool))
        for i in range(layers):
            block = f"h.{i}."
            qkv = self.linear(self.norm(x, block + "ln_1"), block + "attn.c_attn")
            q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2) for part in qkv.split(width, 2))
            scores = (q @ k.transpose(-1, -2) / math.sqrt(width // heads)).masked_fill(~allowed, -math.inf)
            x = x + self.linear((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width), block + "attn.c_proj")
            h = self.linear(self.norm(x, block + "ln_2"), block + "mlp.c_fc")
            h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
            x = x + self.linear(h, block + "mlp.c_proj")
        return self.norm(x, "ln_f") @ self["wte.weight"].T


class Llama(Named):
    """Weights of linear layers are (out, in), as in torch's Linear."""

    def __init__(self, vocabulary, width, heads, key_value_heads, hidden, layers, base):
        self.sizes = width, heads, key_value_heads, layers, base
        key_value_width = key_value_heads * (width // heads)
        p = {"model.embed_tokens.weight": 0.05 * torch.randn(vocabulary, width)}
        linears = (("self_attn.q_proj", width, width), ("self_attn.k_proj", key_value_width, width), ("self_attn.v_proj", key_value_width, width),
                   ("self_attn.o_proj", width, width), ("mlp.gate_proj", hidden, width), ("mlp.up_proj", hidden, width), ("mlp.down_proj", width, hidden))
        for i in range(layers):
            for name, outputs, inputs in linears:
                p[f"model.layers.{i}.{name}.weight"] = 0.15 * torch.randn(outputs, inputs)
            for norm in ("input_layernorm", "post_attention_layernorm"):
                p[f"model.layers.{i}.{norm}.weight"] = 1 + 0.1 * torch.randn(width)
        p["model.norm.weight"] = 1 + 0.1 * torch.randn(width)
        p["lm_head.weight"] = 0.1 * torch.randn(vocabulary, width)
        super().__init__(p)

    def norm(self, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self[name + ".weight"]

    def linear(self, x, name):
        return x @ self[name + ".weight"].T

    def forward(self, tokens):
        width, heads, key_value_heads, layers, base = self.sizes
        batch, length = tokens.shape
        size = width // heads
        angles = torch.arange(length)[:, None] * base ** (-torch.arange(0, size, 2) / size)[None]
        cos, sin = torch.cat([angles, angles], 1).cos(), torch.cat([angles, angles], 1).sin()

        def rotated(z):
            return z * cos + torch.cat([-z[..., size // 2:], z[..., : size // 2]], -1) * sin

        x = self["model.embed_tokens.weight"][tokens]
        allowed = torch.tril(torch.ones(length, length, dtype=torch.bool))
        for i in range(layers):
            attention, mlp = f"model.layers.{i}.self_attn.", f"model.layers.{i}.mlp."
            h = self.norm(x, f"model.layers.{i}.input_layernorm")
            q = rotated(self.linear(h, attention + "q_proj").view(batch, length, heads, size).transpose(1, 2))
            k = rotated(self.linear(h, attention + "k_proj").view(batch, length, key_value_heads, size).transpose(1, 2))
            v = self.linear(h, attention + "v_proj").view(batch, length, key_value_heads, size).transpose(1, 2)
            k, v = (part.repeat_interleave(heads // key_value_heads, 1) for part in (k, v))
            scores = (q @ k.transpose(-1, -2) / math.sqrt(size)).masked_fill(~allowed, -math.inf)
            x = x + self.linear((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width), attention + "o_proj")
            h = self.norm(x, f"model.layers.{i}.post_attention_layernorm")
            x = x + self.linear(F.silu(self.linear(h, mlp + "gate_proj")) * self.linear(h, mlp + "up_proj"), mlp + "down_proj")
        return self.norm(x, "model.norm") @ self["lm_head.weight"].T


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 48), nn.Linear(48, 32), nn.Linear(32, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def trajectory(path, model, data, target, optimizer, clip, steps, metadata):
    parameters = model.all_parameters() if isinstance(model, Named) else dict(model.named_parameters())
    out = {"param/" + name: value.clone() for name, value in parameters.items()}
    out["input"], out["target"] = data, target
    losses, norms = [], []
    for step in range(steps):
        logits = model(data)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            out["logits"], out["loss"] = logits, loss.clone()
            out.update({"grad/" + name: value.grad.clone() for name, value in parameters.items()})
        norms.append(float(nn.utils.clip_grad_norm_(list(parameters.values()), clip if clip else 1e30)))
        losses.append(loss.item())
        optimizer.step()
    out["losses"], out["grad_norms"] = torch.tensor(losses), torch.tensor(norms)
    out.update({"after/" + name: value for name, value in parameters.items()})
    out.update({"buffer_after/" + name: value for name, value in model.named_buffers() if value.dtype == torch.float64})
    save_safetensors(path, out, {**metadata, "steps": steps, "clip": clip, "label_smoothing": 0.0, "ignore_index": -100})
    print(f"{os.path.basename(path)}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, gradient norm {norms[0]:.6f}")


def adamw(model, rate, betas):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=betas, eps=1e-8, weight_decay=0.1)
    return optimizer, {"optimizer": "AdamW", "lr": rate, "beta1": betas[0], "beta2": betas[1], "eps": 1e-8, "weight_decay": 0.1}


def gpt2_tiny(path):
    torch.manual_seed(1)
    model = Gpt2(65, 16, 32, 4, 2)
    tokens = torch.randint(65, (8, 17))
    optimizer, settings = adamw(model, 1e-2, (0.9, 0.99))
    settings.update(model="gpt2", vocab=65, block=16, embed=32, heads=4, layers=2, batch=8)
    trajectory(path, model, tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), optimizer, 1.0, 5, settings)


def llama_tiny(path):
    torch.manual_seed(2)
    model = Llama(48, 32, 4, 2, 64, 2, 10000.0)
    tokens = torch.randint(48, (8, 13))
    optimizer, settings = adamw(model, 3e-3, (0.9, 0.95))
    settings.update(model="llama", vocab=48, block=12, embed=32, heads=4, kv_heads=2, ffn=64, layers=2, batch=8, rope_theta=10000.0, rms_eps=1e-5, tied=False)
    trajectory(path, model, tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), optimizer, 1.0, 5, settings)


def cnn_tiny(path):
    torch.manual_seed(3)
    model = Cnn()
    images, classes = torch.randn(16, 1, 16, 16), torch.randint(10, (16,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    settings = {"model": "cnn", "batch_norm": True, "optimizer": "SGD", "lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4, "batch": 16,
                "bn_eps": 1e-5, "bn_momentum": 0.1}
    trajectory(path, model, images, classes, optimizer, 0, 5, settings)


def mlp_tiny(path):
    torch.manual_seed(4)
    model = Mlp()
    rows, classes = torch.randn(16, 64), torch.randint(10, (16,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    settings = {"model": "mlp", "optimizer": "SGD", "lr": 0.1, "momentum": 0, "nesterov": False, "weight_decay": 0, "batch": 16}
    trajectory(path, model, rows, classes, optimizer, 0, 10, settings)


MODELS = {"gpt2_tiny": gpt2_tiny, "llama_tiny": llama_tiny, "cnn_tiny": cnn_tiny, "mlp_tiny": mlp_tiny}

if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("models", nargs="*")
    given = parser.parse_args()
    if not set(given.models) <= set(MODELS):
        parser.error("models are " + ", ".join(MODELS))
    os.makedirs(given.folder, exist_ok=True)
    for name in given.models or MODELS:
        MODELS[name](os.path.join(given.folder, name + ".safetensors"))
