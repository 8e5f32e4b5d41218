#!/usr/bin/env python3
"""Images per second at which PyTorch trains a network of scenarios/models/ on the GPU, for tests/gpu-check.sh.

The network is built from the file that psd reads, in channels-last order; input is one synthetic batch that stays on
the GPU, SGD with momentum. Prints a number: that of iterations in a row, none of which is waited for. With --compile by
torch.compile, else eager.
"""
import argparse
import sys
import time

import torch
import yaml
from torch import nn

WARM_UP_ITERATIONS = 5


class Network(nn.Module):
    """Layers by name; an entry without `input` reads the one before it."""

    def __init__(self, document):
        super().__init__()
        self.layers = document["layers"]
        self.parts = nn.ModuleList()
        shape = document["input"]
        self.shape = [shape["channels"], shape.get("height", 1), shape.get("width", 1)]
        trial = {"input": torch.zeros([2] + self.shape)}
        before = "input"
        with torch.no_grad():
            for layer in self.layers:
                inputs = self.inputs_of(layer, before)
                self.parts.append(make_part(layer, [trial[name].shape for name in inputs]))
                trial[layer["name"]] = apply_part(layer, self.parts[-1], [trial[name] for name in inputs])
                before = layer["name"]
        self.classes = trial[before].shape[1]

    @staticmethod
    def inputs_of(layer, before):
        return layer.get("inputs") or [layer.get("input", before)]

    def forward(self, images):
        values = {"input": images}
        before = "input"
        for layer, part in zip(self.layers, self.parts):
            values[layer["name"]] = apply_part(layer, part, [values[name] for name in self.inputs_of(layer, before)])
            before = layer["name"]
        return values[before]


def make_part(layer, shapes):
    kind, channels = layer["kind"], shapes[0][1]
    if kind == "conv":
        return nn.Conv2d(channels, layer["outputs"], layer["kernel"], layer.get("stride", 1), layer.get("pad", 0),
                         groups=layer.get("groups", 1), bias=layer.get("bias", True))
    if kind == "inner-product":
        return nn.Sequential(nn.Flatten(), nn.Linear(shapes[0][1:].numel(), layer["outputs"], layer.get("bias", True)))
    if kind == "batch-norm":
        return nn.BatchNorm2d(channels, affine=True)
    if kind == "relu":
        return nn.ReLU(inplace=True)
    if kind == "lrn":
        return nn.LocalResponseNorm(layer.get("size", 5))
    if kind == "pool":
        of = {"max": nn.MaxPool2d, "average": nn.AvgPool2d}[layer["method"]]
        return of(layer["kernel"], layer.get("stride", 1), layer.get("pad", 0), ceil_mode=layer.get("round") == "up")
    if kind == "global-pool":
        return nn.AdaptiveAvgPool2d(1)
    if kind == "dropout":
        return nn.Dropout(float(layer["ratio"]))
    if kind in ("add", "softmax-loss"):
        return nn.Identity()
    sys.exit(f"torch_images.py: no layer kind '{kind}' here")


def apply_part(layer, part, inputs):
    return inputs[0] + inputs[1] if layer["kind"] == "add" else part(inputs[0])


def measure(network, shape, classes, arguments):
    images = torch.rand([arguments.batch] + shape, device="cuda").mul_(2).sub_(1).to(memory_format=torch.channels_last)
    labels = torch.randint(0, classes, (arguments.batch,), device="cuda")
    optimiser = torch.optim.SGD(network.parameters(), lr=0.0001, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    start_sec = 0.0
    for iteration in range(WARM_UP_ITERATIONS + arguments.iterations):
        if iteration == WARM_UP_ITERATIONS:
            torch.cuda.synchronize()
            start_sec = time.monotonic()
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=arguments.arithmetic == "bf16"):
            loss = loss_of(network(images).flatten(1), labels)
        loss.backward()
        optimiser.step()
    torch.cuda.synchronize()
    return arguments.batch * arguments.iterations / (time.monotonic() - start_sec)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--arithmetic", choices=["tf32", "bf16"], required=True)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch_images.py: PyTorch sees no GPU")
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    with open(arguments.model, encoding="utf-8") as file:
        network = Network(yaml.safe_load(file))
    shape, classes = network.shape, network.classes
    network = network.to("cuda", memory_format=torch.channels_last)
    if arguments.compile:
        network = torch.compile(network)
    print(f"{measure(network, shape, classes, arguments):.1f}")


main()
