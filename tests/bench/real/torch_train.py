#!/usr/bin/python3
"""Trains a network of scenarios/models/ with PyTorch on one thread: alone, or in a node of in-cluster.

There, with WORLD_SIZE > 1, by DDP over Gloo. The network is built from the same file that psd reads, and its parameter
count must be PARAMETERS, psd's own. Input is one synthetic batch; SGD with momentum. Prints the seconds of each
iteration after the warm-up, a line for each, on rank 0.
"""
import argparse
import os
import re
import sys
import time

import torch
import torch.distributed
from torch import nn

WARM_UP_ITERATIONS = 2


def read_map(text):
    """{a: 1, b: x} as strings."""
    return dict(re.findall(r"(\w+): *([^,}]+)", text))


def read_model(path):
    """The input's shape and the layers, each a map, of a model file whose layers take one line each."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    shape = next(read_map(line[line.index("{"):]) for line in lines if line.startswith("input:"))
    layers = [read_map(line) for line in lines if line.startswith("  - {")]
    return [int(shape[key]) for key in ("channels", "height", "width") if key in shape], layers


def number(layer, key, default):
    return int(layer.get(key, default))


def make_pool(layer):
    kinds = {"max": nn.MaxPool2d, "average": nn.AvgPool2d}
    return kinds[layer["method"]](number(layer, "kernel", 1), number(layer, "stride", 1), number(layer, "pad", 0),
                                  ceil_mode=layer.get("round") == "up")


def make_layer(layer, shape):
    """One layer's modules; shape is that of what comes in, without the batch."""
    kind = layer["kind"]
    if kind == "conv":
        return [nn.Conv2d(shape[0], number(layer, "outputs", 1), number(layer, "kernel", 1), number(layer, "stride", 1),
                          number(layer, "pad", 0), groups=number(layer, "groups", 1))]
    if kind == "inner-product":
        inputs = 1
        for extent in shape:
            inputs *= extent
        return ([nn.Flatten()] if len(shape) > 1 else []) + [nn.Linear(inputs, number(layer, "outputs", 1))]
    if kind == "relu":
        return [nn.ReLU(inplace=True)]
    if kind == "lrn":
        return [nn.LocalResponseNorm(number(layer, "size", 5))]
    if kind == "pool":
        return [make_pool(layer)]
    if kind == "dropout":
        return [nn.Dropout(float(layer["ratio"]))]
    sys.exit(f"torch_train.py: no layer kind '{kind}' here")


def make_network(path):
    shape, layers = read_model(path)
    modules = []
    trial = torch.zeros([1] + shape)
    for layer in layers:
        if layer["kind"] == "softmax-loss":
            continue
        added = make_layer(layer, list(trial.shape)[1:])
        for module in added:
            with torch.no_grad():
                trial = module(trial)
        modules += added
    return nn.Sequential(*modules), shape, trial.shape[1]


def train(network, images, labels, iterations):
    optimiser = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    seconds = []
    for _ in range(WARM_UP_ITERATIONS + iterations):
        start_sec = time.monotonic()
        optimiser.zero_grad(set_to_none=True)
        loss_of(network(images), labels).backward()
        optimiser.step()
        seconds.append(time.monotonic() - start_sec)
    return seconds[WARM_UP_ITERATIONS:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--parameters", type=int, required=True)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="compute only, whatever WORLD_SIZE says")
    arguments = parser.parse_args()
    rank = int(os.environ.get("RANK", 0))
    workers = 1 if arguments.alone else int(os.environ.get("WORLD_SIZE", 1))

    torch.set_num_threads(1)
    torch.manual_seed(1)
    network, shape, classes = make_network(arguments.model)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    if parameters != arguments.parameters:
        sys.exit(f"torch_train.py: {parameters} parameters, psd has {arguments.parameters}")
    images = torch.rand([arguments.batch] + shape) * 2 - 1
    labels = torch.randint(0, classes, (arguments.batch,))
    if workers > 1:
        torch.distributed.init_process_group("gloo")
        network = nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    seconds = train(network, images, labels, arguments.iterations)
    if rank == 0:
        print("\n".join(f"{second:.5f}" for second in seconds), flush=True)
    if workers > 1:
        torch.distributed.destroy_process_group()


main()
