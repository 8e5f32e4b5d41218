"""One step of training by PyTorch, in double, of the networks that test_torch.c describes; shares nothing with psd.

For each line on standard input, the path of a description, computes forward, backward and the update, writes PATH.out
and answers "done" on standard output. A description has a word and its values on each line:

    step RATE MOMENTUM WEIGHT_DECAY LOSS_DIVISOR     SGD as Caffe counts it:
                                                     history = momentum history + rate (gradient + decay weight)
    batch SAMPLES CHANNELS HEIGHT WIDTH
    tensor 96x3x11x11                                the dimensions, in order;
                                                     PATH.in holds each one's values and then its history
    labels PLACES                                    of a sample
    layer KIND INPUTS FIRST TENSORS KEY=VALUE...     in order, from 0; INPUTS are layer numbers joined by commas, or -;
                                                     TENSORS are a count, FIRST is the first one's number, which may be
                                                     another layer's

PATH.in: floats of all tensors, each with its history; images; labels (as floats); the mask of each dropout in order.
PATH.out: the loss as a double; how far the same step in float is from this one, the worst tensor's ratio of norms, as a
double; then each tensor's new history as floats: what the update takes from the parameters.
"""
import sys

import numpy
import torch
import torch.nn.functional as functional

torch.set_num_threads(1)


class Values:
    """Floats from the beginning of an array on, in the type to compute in."""

    def __init__(self, floats, dtype):
        self.floats, self.dtype, self.at = floats, dtype, 0

    def take(self, *shape):
        count = int(numpy.prod(shape))
        taken = self.floats[self.at : self.at + count]
        if taken.size != count:
            raise ValueError("the file of values is too short")
        self.at += count
        return torch.from_numpy(taken.reshape(shape)).to(self.dtype, copy=True)


def pair(text):
    return tuple(int(part) for part in text.split("x"))


def normalise(x, tensors, keys):
    channels = x.shape[1]
    scale = tensors.pop(0) if keys["scale"] == "1" else torch.ones(channels, dtype=x.dtype)
    shift = tensors.pop(0) if keys["bias"] == "1" else torch.zeros(channels, dtype=x.dtype)
    return scale, shift


def pool(x, keys):
    kernel, stride, pad = pair(keys["kernel"]), pair(keys["stride"]), pair(keys["pad"])
    rounds_up = keys["up"] == "1"
    if keys["max"] == "1":
        return functional.max_pool2d(x, kernel, stride, pad, ceil_mode=rounds_up)
    return functional.avg_pool2d(x, kernel, stride, pad, ceil_mode=rounds_up, count_include_pad=True)


def convolve(x, tensors, keys):
    bias = tensors[1] if len(tensors) > 1 else None
    stride, pad, dilation = pair(keys["stride"]), pair(keys["pad"]), pair(keys["dilation"])
    weight = tensors[0] if tensors[0].dim() == 4 else tensors[0][:, :, None, None]
    return functional.conv2d(x, weight, bias, stride, pad, dilation, int(keys["groups"]))


def look_up(x, table):
    return functional.embedding(x[:, 0].long(), table).permute(0, 3, 1, 2)


def normalise_places(x, tensors, keys):
    scale, shift = normalise(x, tensors, keys)
    last = x.permute(0, 2, 3, 1)
    return functional.layer_norm(last, last.shape[3:], scale, shift, eps=1e-5).permute(0, 3, 1, 2)


def divide_places(x, tensors, keys):
    scale, _ = normalise(x, tensors, dict(keys, bias="0"))
    return x * (x.square().mean(1, keepdim=True) + float(keys["epsilon"])).rsqrt() * scale.view(1, -1, 1, 1)


def rotate(x, base):
    """Channel i of the d of a head with channel i + d / 2, by place * base^(-2 i / d), as complex numbers."""
    places, depth = x.shape[2:]
    exponents = -2.0 * torch.arange(depth // 2, dtype=torch.float64) / depth
    angles = torch.arange(places, dtype=torch.float64)[:, None] * base**exponents
    real, imaginary = x.chunk(2, 3)
    cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((real * cosines - imaginary * sines, real * sines + imaginary * cosines), 3)


def attend(x, keys):
    """softmax(queries keys^T / sqrt(channels)) values, in heads, some of which may share keys and values."""
    samples, channels, height, width = x.shape
    heads, kv_heads, places = int(keys["heads"]), int(keys["kv_heads"]), height * width
    depth = channels // (heads + 2 * kv_heads)
    parts = x.reshape(samples, heads + 2 * kv_heads, depth, places).transpose(2, 3)
    queries, others, worth = parts.split((heads, kv_heads, kv_heads), 1)
    if float(keys["rotary"]) > 0:
        queries, others = rotate(queries, float(keys["rotary"])), rotate(others, float(keys["rotary"]))
    others, worth = (part.repeat_interleave(heads // kv_heads, 1) for part in (others, worth))
    scores = queries @ others.transpose(2, 3) / depth**0.5
    if keys["causal"] == "1":
        scores = scores.masked_fill(torch.ones(places, places).triu(1).bool(), float("-inf"))
    return (scores.softmax(3) @ worth).transpose(2, 3).reshape(samples, heads * depth, height, width)


def forward(kind, inputs, tensors, keys, values):
    x = inputs[0]
    if kind == "conv":
        return convolve(x, tensors, keys)
    if kind == "pool":
        return pool(x, keys)
    if kind == "global-pool":
        return x.mean((2, 3), keepdim=True)
    if kind == "lrn":
        return functional.local_response_norm(x, int(keys["size"]), alpha=1e-4, beta=0.75, k=1.0)
    if kind == "batch-norm":
        return functional.batch_norm(x, None, None, *normalise(x, tensors, keys), training=True, eps=1e-5)
    if kind == "scale":
        scale, shift = (tensor.view(1, -1, 1, 1) for tensor in normalise(x, tensors, keys))
        return x * scale + shift
    if kind == "layer-norm":
        return normalise_places(x, tensors, keys)
    if kind == "rms-norm":
        return divide_places(x, tensors, keys)
    if kind == "embedding":
        return look_up(x, tensors[0])
    if kind == "position":
        return x + tensors[0]
    if kind == "prefix":
        return torch.cat((tensors[0].expand(x.shape[0], -1, -1), x.flatten(2)), 2).unsqueeze(3)
    if kind == "attention":
        return attend(x, keys)
    if kind == "gelu":
        return functional.gelu(x, approximate=keys["approximate"])
    if kind == "silu":
        return functional.silu(x)
    if kind == "relu":
        return functional.relu(x)
    if kind == "sigmoid":
        return torch.sigmoid(x)
    if kind == "dropout":
        return x * values.take(*x.shape)
    if kind == "inner-product":
        return functional.linear(x.flatten(1), tensors[0], tensors[1] if len(tensors) > 1 else None)[:, :, None, None]
    if kind == "concat":
        return torch.cat(inputs, 1)
    if kind == "permute":
        return x.permute(0, *(int(axis) for axis in keys["order"].split(",")))
    if kind == "slice":
        return x.narrow(1, int(keys["first"]), int(keys["channels"]))
    if kind == "multiply":
        return inputs[0] * inputs[1]
    if kind == "add":
        return sum(inputs[1:], inputs[0])
    raise ValueError("no layer kind '%s'" % kind)


def run(lines, values):
    """The loss and each tensor's new history."""
    parameters, layers, loss = [], [], 0.0
    for words in lines:
        if words[0] == "step":
            rate, momentum, decay, divisor = (float(word) for word in words[1:])
        elif words[0] == "batch":
            shape = [int(word) for word in words[1:]]
        elif words[0] == "labels":
            places = int(words[1])
        elif words[0] == "tensor":
            dims = pair(words[1])
            parameters.append((values.take(*dims).requires_grad_(), values.take(*dims)))
        elif words[1] == "input":
            images, labels = values.take(*shape), values.take(shape[0], places).long()
            layers.append(images)
        else:
            inputs = [layers[int(number)] for number in words[2].split(",")]
            keys = dict(word.split("=") for word in words[5:])
            own = [parameters[i][0] for i in range(int(words[3]), int(words[3]) + int(words[4]))]
            if words[1] == "softmax-loss":
                each = functional.cross_entropy(inputs[0].flatten(2), labels, reduction="none")
                loss = loss + each.mean(1).sum() / divisor
                layers.append(inputs[0])
            else:
                layers.append(forward(words[1], inputs, own, keys, values))
    loss.backward()
    optimiser = torch.optim.SGD([weight for weight, _ in parameters], rate, momentum, weight_decay=decay)
    for weight, history in parameters:
        optimiser.state[weight]["momentum_buffer"] = history / rate
    optimiser.step()
    return loss.item(), [rate * optimiser.state[weight]["momentum_buffer"] for weight, _ in parameters]


def main():
    for path in sys.stdin:
        path = path.strip()
        with open(path) as description:
            lines = [line.split() for line in description]
        floats = numpy.fromfile(path + ".in", dtype="<f4")
        loss, steps = run(lines, Values(floats, torch.float64))
        _, rough_steps = run(lines, Values(floats, torch.float32))
        worst = max(((rough - step).norm() / step.norm()).item() for rough, step in zip(rough_steps, steps))
        with open(path + ".out", "wb") as out:
            numpy.array([loss, worst], dtype="<f8").tofile(out)
            for step in steps:
                step.numpy().astype("<f4").tofile(out)
        print("done", flush=True)


main()
