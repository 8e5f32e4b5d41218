"""Writes traces of PyTorch's profiler on the processor: ResNet-18 (torchvision) and the GPT of
scenarios/models/gpt-small.yaml, with a table of the measured seconds. psd-sim imports them in tests/sim/import/.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch torchvision
    /tmp/venv/bin/python tests/import/make.py build/traces
"""
import gzip
import json
import os
import statistics
import sys
import time

import torch
import torchvision
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

WARM, STEPS = 2, 4


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(w, 2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.fc2(nn.functional.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary=256, tokens=64, width=128, heads=4, blocks=4):
        super().__init__()
        self.table, self.places = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(tokens, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        x = self.table(x) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


def train(name, folder, net, inputs, labels, with_stack):
    optimizer, loss = torch.optim.SGD(net.parameters(), lr=0.01), nn.CrossEntropyLoss()
    seconds = []
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=with_stack,
                 schedule=schedule(wait=0, warmup=WARM, active=STEPS),
                 on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/{name}.json")) as profiler:
        for _ in range(WARM + STEPS):
            start = time.perf_counter()
            optimizer.zero_grad()
            loss(net(inputs), labels).backward()
            optimizer.step()
            seconds.append(time.perf_counter() - start)
            profiler.step()
    # Only what an import reads, without stacks: the file stays small.
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        trace = json.load(file)
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("ph") == "X" and (
        event.get("cat") in ("cpu_op", "user_annotation") or event["name"].startswith("nn.Module: "))]
    for event in trace["traceEvents"]:
        for key in list(event.get("args", {})):
            if key not in ("External id", "Sequence number", "Fwd thread id", "Input Dims"):
                del event["args"][key]
    trace = {key: trace[key] for key in ("schemaVersion", "record_shapes", "traceEvents") if key in trace}
    with gzip.GzipFile(f"{folder}/{name}.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(trace, separators=(",", ":")).encode())
    os.remove(f"{folder}/{name}.json")
    print(f"{name},{statistics.median(seconds[WARM:]):.6f}")


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    print("trace,step_sec")
    train("resnet18", folder, torchvision.models.resnet18(), torch.randn(4, 3, 224, 224), torch.randint(1000, (4,)),
          False)
    train("gpt", folder, Gpt(), torch.randint(256, (8, 64)), torch.randint(256, (8 * 64,)), True)


main()
