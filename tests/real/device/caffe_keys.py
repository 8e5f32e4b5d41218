"""The losses in tests/data/caffe_keys.txt, by PyTorch in double: Caffe's layers, which share nothing with psd's.

Prints the table with its last column computed again: python3 caffe_keys.py <old >new (needs python3-torch). Each line
has a network in Caffe's spelling between a convolution and a classifier, and what stands for the key between [[ and ]],
or [[with||without]].
"""
import re
import sys

import numpy
import torch
import torch.nn.functional as functional

SEED, BATCH, SIDE, CHANNELS, CLASSES, ITERATIONS, FIRST_SAMPLE = 20160716, 4, 6, 4, 3, 5, 8
HEAD = "layer { name: 'base' type: 'Convolution' bottom: 'data' top: 'base' \
convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }"
TAIL = "layer { name: 'fc' type: 'InnerProduct' bottom: 'top' top: 'fc' inner_product_param { num_output: 3 } } \
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'label' top: 'loss' }"


def parse(text):
    """Messages as lists of (key, value), in order."""
    tokens = re.findall(r"'[^']*'|[{}:\[\],]|[^\s{}:\[\],]+", text)

    def fields(stop):
        found = []
        while tokens and tokens[0] != stop:
            key = tokens.pop(0)
            if tokens[0] == ":":
                tokens.pop(0)
            if tokens[0] == "{":
                tokens.pop(0)
                found.append((key, fields("}")))
                tokens.pop(0)
            elif tokens[0] == "[":
                while tokens.pop(0) != "]":
                    found.append((key, tokens.pop(0)))
            else:
                found.append((key, tokens.pop(0).strip("'")))
        return found

    return fields(None)


def every(message, key):
    return [value for name, value in message if name == key]


def get(message, key, default=None):
    return (every(message, key) + [default])[0]


def number(message, key, default):
    return float(get(message, key, default))


def sides(message, key, least):
    both = [int(value) for value in every(message, key)] or [least]
    prefix = {"kernel_size": "kernel"}.get(key, key)
    return [int(get(message, prefix + "_h", both[0])), int(get(message, prefix + "_w", both[-1]))]


class Draws:
    def __init__(self):
        self.state = SEED

    def take(self, count):
        drawn = numpy.empty(count, dtype=numpy.float32)
        for i in range(count):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            drawn[i] = numpy.float32(self.state >> 8) * numpy.float32(2.0**-23) - numpy.float32(1)
        return drawn


def philox(counter, key):
    """Salmon et al. 2011: 10 rounds of Philox 4x32."""
    words, keys = list(counter), [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        one, two = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [two >> 32 ^ words[1] ^ keys[0], two & 0xFFFFFFFF, one >> 32 ^ words[3] ^ keys[1], one & 0xFFFFFFFF]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return words


def bilinear(shape):
    """As Long et al. 2015 start their deconvolutions (FCN, surgery.py)."""
    factor = (shape[-1] + 1) // 2
    center = factor - 1 if shape[-1] % 2 == 1 else factor - 0.5
    rows, columns = numpy.ogrid[: shape[-2], : shape[-1]]
    window = (1 - abs(rows - center) / factor) * (1 - abs(columns - center) / factor)
    return torch.from_numpy(numpy.float32(window)).double().expand(shape).clone()


class Net:
    def __init__(self, text):
        self.layers = [dict(message=message, type=get(message, "type"), tensors=[]) for _, message in parse(text)]
        self.parameters, self.draws, self.shapes, self.named = [], Draws(), True, {}
        self.forward(torch.zeros(BATCH, 3, SIDE, SIDE, dtype=torch.float64), None, 0, True)
        self.shapes = False
        for parameter in self.parameters:
            drawn = torch.from_numpy(self.draws.take(parameter["w"].numel()) * numpy.float32(0.5)).double()
            if parameter["start"] == "bilinear":
                parameter["w"] = bilinear(parameter["w"].shape)
            elif parameter["start"] is None:
                parameter["w"] = drawn.reshape(parameter["w"].shape)
            else:
                start = float(numpy.float32(parameter["start"]))
                parameter["w"] = torch.full(parameter["w"].shape, start, dtype=torch.float64)
            parameter["w"].requires_grad_()
            parameter["h"] = torch.zeros_like(parameter["w"])

    def tensor(self, layer, index, shape, message, filler, start):
        """The layer's tensor of that number, made the first time. start: a constant, or None where it is drawn."""
        if self.shapes:
            own = get(message, filler)
            if own is not None:
                kind = get(own, "type", "constant").lower()
                start = {"constant": number(own, "value", 0), "bilinear": kind}.get(kind)
            params, first = every(layer["message"], "param"), 0
            rates, decays = every(layer["message"], "blobs_lr"), every(layer["message"], "weight_decay")
            param = params[first + index] if first + index < len(params) else []
            rate = float(rates[index]) if index < len(rates) else number(param, "lr_mult", 1)
            decay = float(decays[index]) if index < len(decays) else number(param, "decay_mult", 1)
            name = get(param, "name")
            if name in self.named:
                layer["tensors"].append(self.named[name])
                return self.named[name]["w"]
            parameter = dict(w=torch.zeros(shape, dtype=torch.float64), rate=rate, decay=decay, start=start)
            self.parameters.append(parameter)
            layer["tensors"].append(parameter)
            if name is not None:
                self.named[name] = parameter
        return layer["tensors"][index]["w"]

    def mask(self, shape, layer, iteration, ratio):
        mask = numpy.empty(shape)
        for sample in range(BATCH):
            flat = mask[sample].reshape(-1)
            for element in range(flat.size):
                word = philox([element // 4, layer, FIRST_SAMPLE + sample, iteration], SEED)[element % 4]
                flat[element] = 0 if word < ratio * 2**32 else 1 / (1 - ratio)
        return torch.from_numpy(mask)

    def forward(self, images, labels, iteration, is_training):
        blobs, loss, graph_number = {"data": images}, 0, 0
        for layer in self.layers:
            graph_number += 1
            kind, message = layer["type"].lower().replace("_", ""), layer["message"]
            inputs = [blobs[name] for name in every(message, "bottom") if name != "label"]
            tops = every(message, "top")
            if kind in ("softmaxwithloss", "softmaxloss"):
                if labels is not None:
                    weight = number(message, "loss_weight", 1)
                    loss = loss + weight * functional.cross_entropy(inputs[0].flatten(1), labels)
                continue
            made = self.run(layer, kind, message, inputs, len(tops), graph_number, iteration, is_training)
            for top, blob in zip(tops, made if isinstance(made, (list, tuple)) else [made]):
                blobs[top] = blob
        return loss

    def bias(self, layer, message, outputs):
        """The second tensor of a layer that may go without."""
        if get(message, "bias_term", "true") != "true":
            return None
        return self.tensor(layer, 1, [outputs], message, "bias_filler", None)

    def run(self, layer, kind, message, inputs, n_tops, graph_number, iteration, is_training):
        x = inputs[0]
        names = {"normalize": "norm_param", "innerproduct": "inner_product_param", "batchnorm": "batch_norm_param",
                 "shufflechannel": "shuffle_channel_param", "convolutiondepthwise": "convolution_param",
                 "depthwiseconvolution": "convolution_param", "deconvolution": "convolution_param"}
        own = get(message, names.get(kind, kind + "_param"), [])
        channels = x.shape[1]
        if kind in ("convolution", "convolutiondepthwise", "depthwiseconvolution"):
            outputs = int(get(own, "num_output"))
            groups = int(get(own, "group", 1)) if kind == "convolution" else channels
            shape = [outputs, channels // groups] + sides(own, "kernel_size", 1)
            weight = self.tensor(layer, 0, shape, own, "weight_filler", None)
            bias = self.bias(layer, own, outputs)
            dilation = [int(get(own, "dilation", 1))] * 2
            return functional.conv2d(x, weight, bias, sides(own, "stride", 1), sides(own, "pad", 0), dilation, groups)
        if kind == "deconvolution":
            outputs, groups = int(get(own, "num_output")), int(get(own, "group", 1))
            shape = [channels, outputs // groups] + sides(own, "kernel_size", 1)
            weight = self.tensor(layer, 0, shape, own, "weight_filler", None)
            bias = self.bias(layer, own, outputs)
            stride, pad = sides(own, "stride", 1), sides(own, "pad", 0)
            return functional.conv_transpose2d(x, weight, bias, stride, pad, 0, groups)
        if kind == "interp":
            zoom, shrink = int(get(own, "zoom_factor", 1)), int(get(own, "shrink_factor", 1))
            shrunk = [(side - 1) // shrink + 1 for side in x.shape[2:]]
            size = [side + (side - 1) * (zoom - 1) for side in shrunk]
            size = [int(get(own, "height", size[0])), int(get(own, "width", size[1]))]
            return functional.interpolate(x, size, mode="bilinear", align_corners=True)
        if kind == "clip":
            return x.clamp(number(own, "min", 0), number(own, "max", 0))
        if kind == "swish":
            return x * torch.sigmoid(number(own, "beta", 1) * x)
        if kind == "innerproduct":
            outputs = int(get(own, "num_output"))
            flat = x.flatten(1)
            weight = self.tensor(layer, 0, [outputs, flat.shape[1]], own, "weight_filler", None)
            bias = self.bias(layer, own, outputs)
            return functional.linear(flat, weight, bias)[:, :, None, None]
        if kind == "pooling":
            is_global = get(own, "global_pooling", "false") == "true"
            window = list(x.shape[2:]) if is_global else sides(own, "kernel_size", 1)
            rounds_up = get(own, "ceil_mode", "true") == "true" and get(own, "round_mode", "CEIL") == "CEIL"
            rounds_up = rounds_up and get(own, "torch_pooling", "false") == "false"
            args = (window, sides(own, "stride", 1), sides(own, "pad", 0), rounds_up)
            if get(own, "pool", "MAX") == "MAX":
                return functional.max_pool2d(x, args[0], args[1], args[2], ceil_mode=args[3])
            return functional.avg_pool2d(x, *args, count_include_pad=True)
        if kind == "spp":
            methods = {"MAX": functional.adaptive_max_pool2d, "AVE": functional.adaptive_avg_pool2d}
            method = methods[get(own, "pool", "MAX")]
            levels = [method(x, 2**level).flatten(1) for level in range(int(get(own, "pyramid_height")))]
            return torch.cat(levels, 1)[:, :, None, None]
        if kind == "lrn":
            size = int(get(own, "local_size", 5))
            alpha, beta, k = number(own, "alpha", 1), number(own, "beta", 0.75), number(own, "k", 1)
            if get(own, "norm_region", "ACROSS_CHANNELS") == "ACROSS_CHANNELS":
                return functional.local_response_norm(x, size, alpha, beta, k)
            return x * (1 + alpha * functional.avg_pool2d(x * x, size, 1, size // 2, count_include_pad=True)) ** -beta
        if kind == "relu":
            return functional.leaky_relu(x, number(own, "negative_slope", 0))
        if kind == "relu6":
            return x.clamp(0, 6)
        if kind == "prelu":
            shape = [1 if get(own, "channel_shared", "false") == "true" else channels]
            return functional.prelu(x, self.tensor(layer, 0, shape, own, "filler", 0.25))
        if kind == "elu":
            return functional.elu(x, number(own, "alpha", 1))
        if kind == "sigmoid":
            return torch.sigmoid(x)
        if kind == "tanh":
            return torch.tanh(x)
        if kind == "power":
            return (x * number(own, "scale", 1) + number(own, "shift", 0)) ** number(own, "power", 1)
        if kind in ("exp", "log"):
            base, line = number(own, "base", -1), x * number(own, "scale", 1) + number(own, "shift", 0)
            if kind == "exp":
                return torch.exp(line) if base == -1 else base**line
            return torch.log(line) / (1 if base == -1 else numpy.log(base))
        if kind == "absval":
            return x.abs()
        if kind == "bnll":
            return functional.softplus(x)
        if kind == "mish":
            return functional.mish(x)
        if kind in ("hswish", "hardswish"):
            return functional.hardswish(x)
        if kind == "hsigmoid":
            return functional.hardsigmoid(x)
        if kind == "dropout":
            ratio = number(own, "dropout_ratio", 0.5)
            return x * self.mask(x.shape, graph_number, iteration, ratio) if is_training and not self.shapes else x
        if kind == "batchnorm":
            return self.normalise(layer, own, x, is_training)
        if kind == "bn":
            rate = dict(rate=0) if get(own, "frozen") == "true" else {}
            slope = self.tensor(layer, 0, [channels], own, "slope_filler", 1).view(1, -1, 1, 1)
            shift = self.tensor(layer, 1, [channels], own, "bias_filler", 0).view(1, -1, 1, 1)
            for tensor in layer["tensors"]:
                tensor.update(rate)
            fixed = [("use_global_stats", get(own, "frozen", "false"))]
            return self.normalise(layer, own + fixed, x, is_training) * slope + shift
        if kind == "normalize":
            axes = (1, 2, 3) if get(own, "across_spatial", "true") == "true" else (1,)
            shape = [1 if get(own, "channel_shared", "true") == "true" else channels]
            factor = self.tensor(layer, 0, shape, own, "scale_filler", 1).view(1, -1, 1, 1)
            return factor * x / torch.sqrt((x * x).sum(axes, keepdim=True) + number(own, "eps", 1e-10))
        if kind in ("scale", "bias"):
            if len(inputs) == 2:
                return x * inputs[1]
            factor = self.tensor(layer, 0, [channels], own, "filler", 1 if kind == "scale" else 0).view(1, -1, 1, 1)
            if kind == "bias":
                return x + factor
            has_bias = get(own, "bias_term", "false") == "true"
            bias = self.tensor(layer, 1, [channels], own, "bias_filler", 0).view(1, -1, 1, 1) if has_bias else 0
            return x * factor + bias
        if kind == "eltwise":
            if get(own, "operation", "SUM") == "PROD":
                return torch.stack(inputs).prod(0)
            if get(own, "operation", "SUM") == "MAX":
                return torch.stack(inputs).amax(0)
            coefficients = [float(value) for value in every(own, "coeff")] or [1.0] * len(inputs)
            return sum(c * blob for c, blob in zip(coefficients, inputs))
        if kind == "axpy":
            return inputs[0] * inputs[1] + inputs[2]
        if kind == "concat":
            return torch.cat(inputs, 1)
        if kind == "slice":
            points = [int(value) for value in every(own, "slice_point")]
            equal_parts = list(range(channels // n_tops, channels, channels // n_tops))
            return torch.tensor_split(x, points or equal_parts, 1)
        if kind == "split":
            return [x] * n_tops
        if kind == "flatten":
            flat = x.flatten(int(get(own, "axis", 1)), int(get(own, "end_axis", -1)))
            return flat[(...,) + (None,) * (4 - flat.dim())]
        if kind == "reshape":
            axis, count = int(get(own, "axis", 0)), int(get(own, "num_axes", -1))
            end = x.dim() if count < 0 else axis + count
            dims = [int(value) for value in every(get(own, "shape"), "dim")]
            dims = [x.shape[axis + i] if d == 0 else d for i, d in enumerate(dims)]
            return x.reshape([BATCH] + (list(x.shape[:axis]) + dims + list(x.shape[end:]))[1:])
        if kind == "tile":
            repeats = [1] * 4
            repeats[int(get(own, "axis", 1))] = int(get(own, "tiles"))
            return x.repeat(repeats)
        if kind == "reduction":
            rows = x.flatten(int(get(own, "axis")))
            operation = get(own, "operation", "SUM")
            rows = {"ASUM": rows.abs(), "SUMSQ": rows**2}.get(operation, rows)
            reduced = number(own, "coeff", 1) * (rows.mean(-1) if operation == "MEAN" else rows.sum(-1))
            return reduced[(...,) + (None,) * (4 - reduced.dim())]
        if kind == "permute":
            return x.permute([int(value) for value in every(own, "order")])
        if kind == "softmax":
            return torch.softmax(x, 1)
        if kind == "shufflechannel":
            groups = int(get(own, "group"))
            return x.reshape(BATCH, groups, channels // groups, *x.shape[2:]).transpose(1, 2).reshape(x.shape)
        raise ValueError("no layer type '%s'" % kind)

    def normalise(self, layer, own, x, is_training):
        eps, kept = number(own, "eps", 1e-5), number(own, "moving_average_fraction", 0.999)
        is_fixed = get(own, "use_global_stats", "false") == "true"
        state = layer.setdefault("state", dict(mean=0, variance=0, factor=0))
        if is_fixed or (not is_training and not self.shapes):
            mean = state["mean"] / state["factor"] if state["factor"] else torch.zeros(x.shape[1], dtype=x.dtype)
            variance = state["variance"] / state["factor"] if state["factor"] else torch.ones(x.shape[1], dtype=x.dtype)
        else:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
            if not self.shapes:
                count = x.numel() / x.shape[1]
                state["mean"] = kept * state["mean"] + mean.detach()
                state["variance"] = kept * state["variance"] + variance.detach() * count / (count - 1)
                state["factor"] = kept * state["factor"] + 1
        return (x - mean.view(1, -1, 1, 1)) / torch.sqrt(variance.view(1, -1, 1, 1) + eps)


def rate_of(solver, iteration):
    base, gamma, power = number(solver, "base_lr", 0), number(solver, "gamma", 0), number(solver, "power", 0)
    return {
        "fixed": lambda: base,
        "step": lambda: base * gamma ** (iteration // int(get(solver, "stepsize"))),
        "multistep": lambda: base * gamma ** sum(int(value) <= iteration for value in every(solver, "stepvalue")),
        "inv": lambda: base * (1 + gamma * iteration) ** -power,
        "exp": lambda: base * gamma**iteration,
        "poly": lambda: base * (1 - iteration / number(solver, "max_iter", 1)) ** power,
    }[get(solver, "lr_policy")]()


def train(solver_text, layers_text, phase):
    net, solver = Net(HEAD + layers_text + TAIL), parse(solver_text)
    images = torch.from_numpy(net.draws.take(BATCH * 3 * SIDE * SIDE)).double().reshape(BATCH, 3, SIDE, SIDE)
    labels = torch.arange(BATCH) % CLASSES
    momentum, decay = number(solver, "momentum", 0), number(solver, "weight_decay", 0)
    for iteration in range(ITERATIONS):
        net.forward(images, labels, iteration, True).backward()
        with torch.no_grad():
            for p in net.parameters:
                gradient = p["w"].grad if p["w"].grad is not None else torch.zeros_like(p["w"])
                before = p["h"].clone()
                rate = rate_of(solver, iteration) * p["rate"]
                p["h"].mul_(momentum).add_(rate * (gradient + decay * p["decay"] * p["w"]))
                step = (1 + momentum) * p["h"] - momentum * before if get(solver, "type") == "Nesterov" else p["h"]
                p["w"].sub_(step)
                p["w"].grad = None
    return net.forward(images, labels, ITERATIONS, phase == "train").item()


for line in sys.stdin:
    columns = [column.strip() for column in line.split("|>")]
    if line.startswith("#") or len(columns) < 5:
        print(line, end="")
        continue
    with_key = [re.sub(r"\[\[(.*?)(\|\|.*?)?\]\]", r"\1", column) for column in columns]
    loss = train(with_key[2], with_key[3], columns[4])
    print(" |> ".join(columns[:5] + ["%.9g" % loss]))
