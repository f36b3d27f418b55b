#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The training step of nanoGPT's CPU configuration in PyTorch, to hold weft's against: the same model, batch, clipping and AdamW.

usage: gpt_step_torch.py [--steps 60] [--ranks 1] [--text FILE]
One thread a rank; several ranks are processes under DistributedDataParallel over gloo. Prints the median step in ms and tokens/s.
Model: 4 layers, 4 heads, width 128, 64 tokens, batch 12 a rank, vocabulary 65, no dropout, tied head, float32.
"""
import argparse
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HEADS, WIDTH, TOKENS, BATCH, VOCABULARY = 4, 4, 128, 64, 12, 65


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.full((TOKENS, TOKENS), float("-inf")).triu(1).view(1, 1, TOKENS, TOKENS))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(WIDTH, 2))
        if hasattr(F, "scaled_dot_product_attention"):  # PyTorch 2
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (c // HEADS) ** -0.5
            y = (scores + self.mask).softmax(-1) @ v
        x = x + self.projection(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks, self.norm = nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def run(rank, ranks, steps, data, port):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Gpt()
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    generator = torch.Generator().manual_seed(rank)
    times = []
    for _ in range(steps + 10):
        at = torch.randint(len(data) - TOKENS - 1, (BATCH,), generator=generator)
        ids = torch.stack([data[i : i + TOKENS] for i in at])
        targets = torch.stack([data[i + 1 : i + 1 + TOKENS] for i in at])
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(ids, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        times.append(time.perf_counter() - start)
    median = statistics.median(times[10:])
    if rank == 0:
        print(f"torch {torch.__version__} ranks {ranks} step_ms {median * 1e3:.2f} tokens_per_second {ranks * BATCH * TOKENS / median:.0f} loss {loss.item():.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--text")
    parser.add_argument("--port", type=int, default=29511)
    options = parser.parse_args()
    if options.text:
        text = open(options.text, "rb").read()
        index = {b: i for i, b in enumerate(sorted(set(text)))}
        data = torch.tensor([index[b] % VOCABULARY for b in text])
    else:
        data = torch.randint(VOCABULARY, (100000,), generator=torch.Generator().manual_seed(0))
    if options.ranks == 1:
        run(0, 1, options.steps, data, options.port)
    else:
        torch.multiprocessing.spawn(run, args=(options.ranks, options.steps, data, options.port), nprocs=options.ranks)


if __name__ == "__main__":
    main()
