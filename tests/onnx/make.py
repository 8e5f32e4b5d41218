"""Makes NAME.onnx and NAME.csv of this folder: python3 make.py [NAME...] (needs torch, transformers, onnx, onnxscript).

Each network has random weights and is written by one of PyTorch's exporters; the expected values are PyTorch's own, in
double, for samples that are drawn here.
"""
import copy
import os
import sys

import onnx
import torch
import torch.nn.functional as functional
import transformers
from torch import nn

FOLDER = os.path.dirname(os.path.abspath(__file__))
KEPT_METADATA = "pkg.torch.onnx.name_scopes"
BATCH = 2
VALUES_PER_ROW = 8
NETWORKS = {}


def network(name, shape, vocabulary=0, gradients=(), **options):
    """A row of the table. shape: of a sample; gradients: how names of parameters begin whose gradients are kept."""
    def add(make):
        NETWORKS[name] = (make, shape, vocabulary, gradients, options)
        return make
    return add


class SqueezeExcite(nn.Module):
    def __init__(self, channels, inner):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x):
        means = functional.adaptive_avg_pool2d(x, 1)
        return x * functional.hardsigmoid(self.up(functional.relu(self.down(means))))


class Maps(nn.Module):
    """What convolutional networks are made of."""
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, (3, 5), stride=(1, 2), padding=(0, 2), bias=False)
        self.norm = nn.BatchNorm2d(8, eps=3e-3, momentum=0.25)
        self.grouped = nn.Conv2d(8, 12, 3, padding=2, dilation=2, groups=4, bias=False)
        self.norm2 = nn.BatchNorm2d(12)
        self.excite = SqueezeExcite(12, 5)
        self.depthwise = nn.Conv2d(6, 6, 3, stride=2, padding=1, groups=6)
        self.other = nn.Conv2d(6, 4, 1)
        self.reduce = nn.Conv2d(22, 8, (1, 2), padding=(0, 1))
        self.spread = nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, groups=2)
        self.head = nn.Linear(6 * 3 * 4, 6)

    def shuffle(self, x):
        n, channels, height, width = x.shape
        return x.view(n, 3, channels // 3, height, width).transpose(1, 2).reshape(n, channels, height, width)

    def forward(self, x):
        x = functional.relu6(self.norm(self.stem(x)) * 3)
        x = functional.hardswish(self.norm2(self.grouped(x)))
        x = self.shuffle(self.excite(x))
        left, right = x.chunk(2, dim=1)
        left = functional.leaky_relu(self.depthwise(left), 0.15)
        other, last = self.other(right).split([3, 1], dim=1)
        parts = [functional.max_pool2d(right, 3, 2, padding=1), other[:, :, -4:, 3:], last[:, :, ::2, :4]]
        right = torch.cat(parts, 1)
        mean = functional.avg_pool2d(x[:, 3:9], 3, 2, padding=1)
        x = torch.cat([functional.silu(left), right, mean], 1)
        x = functional.avg_pool2d(functional.elu(self.reduce(x), 0.7), 2, 1)
        x = torch.clamp(self.spread(x), -0.8, 1.1)
        x = functional.max_pool2d(x, 2, 2, ceil_mode=True)
        return self.head(torch.flatten(x, 1))


@network("maps-torchscript", (3, 9, 14), gradients=[""], dynamo=False)
def maps_torchscript():
    return Maps()


@network("maps-dynamo", (3, 9, 14), dynamo=True)
def maps_dynamo():
    return Maps()


class Encoder(nn.Module):
    """A map in patches, their places, two blocks of attention, the mean over the places."""
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 2, stride=2)
        self.places = nn.Parameter(torch.zeros(1, 15, 12))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(12, 3, 20, 0, activation=activation, batch_first=True, norm_first=is_first)
            for activation, is_first in [("gelu", True), ("relu", False)])
        self.norm = nn.LayerNorm(12, eps=1e-3)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


@network("encoder-torchscript", (3, 6, 10), gradients=["patches", "blocks.0"], dynamo=False,
         training=torch.onnx.TrainingMode.EVAL)
def encoder_torchscript():
    return Encoder()


@network("encoder-old", (3, 6, 10), dynamo=False, training=torch.onnx.TrainingMode.EVAL, opset_version=14)
def encoder_old():
    return Encoder()


@network("encoder-dynamo", (3, 6, 10), dynamo=True)
def encoder_dynamo():
    return Encoder()


@network("encoder-plain", (3, 6, 10), dynamo=True, optimize=False)
def encoder_plain():
    return Encoder()


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens)[0]


@network("gpt2", (12,), vocabulary=40, dynamo=True)
def gpt2():
    config = transformers.GPT2Config(vocab_size=40, n_positions=12, n_embd=16, n_layer=2, n_head=2, use_cache=False,
                                     resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    return Logits(transformers.GPT2LMHeadModel(config))


@network("llama", (10,), vocabulary=40, dynamo=True,
         gradients=["model.model.layers.0.self_attn.k", "model.model.layers.0.self_attn.v"])
def llama():
    config = transformers.LlamaConfig(vocab_size=40, hidden_size=24, intermediate_size=36, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=10,
                                      use_cache=False, rms_norm_eps=1e-4)
    return Logits(transformers.LlamaForCausalLM(config))


class Tied(nn.Module):
    """The head multiplies by the table of tokens; two heads of queries see one of keys and values, and none ahead."""
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(17, 12), nn.Embedding(9, 12)
        self.norm = nn.LayerNorm(12)
        self.queries, self.keys, self.values = nn.Linear(12, 12), nn.Linear(12, 6, bias=False), nn.Linear(12, 6)
        self.join = nn.Linear(12, 12, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(9))
        y = self.norm(x)
        queries = self.queries(y).view(*tokens.shape, 4, 3).transpose(1, 2)
        keys, values = (f(y).view(*tokens.shape, 2, 1, 3).permute(0, 2, 3, 1, 4).expand(-1, -1, 2, -1, -1).flatten(1, 2)
                        for f in (self.keys, self.values))
        y = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.join(y.transpose(1, 2).flatten(2))
        return functional.linear(torch.tanh(x), self.tokens.weight)


@network("tied-torchscript", (9,), vocabulary=17, gradients=["tokens", "queries", "keys", "values"], dynamo=False)
def tied_torchscript():
    return Tied()


@network("tied-dynamo", (9,), vocabulary=17, gradients=["tokens", "queries", "keys", "values"], dynamo=True,
         optimize=False)
def tied_dynamo():
    return Tied()


class ChannelsLast(nn.Module):
    """As blocks of ConvNeXt: normalised and mixed where channels are last, with a learned factor for each."""
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 8, 2, stride=2)
        self.stem_norm = nn.LayerNorm(8, eps=1e-6)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.norm = nn.LayerNorm(8, eps=1e-3)
        self.wide, self.narrow = nn.Linear(8, 13), nn.Linear(13, 8)
        self.layer_scale = nn.Parameter(torch.zeros(8, 1, 1))
        self.last_norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem_norm(self.stem(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.narrow(functional.gelu(self.wide(y))).permute(0, 3, 1, 2)
        x = x + self.layer_scale * y
        x = functional.adaptive_avg_pool2d(x, 1)
        return self.head(self.last_norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).flatten(1))


@network("channels-last-torchscript", (2, 10, 6), gradients=[""], dynamo=False)
def channels_last_torchscript():
    return ChannelsLast()


@network("channels-last-dynamo", (2, 10, 6), dynamo=True)
def channels_last_dynamo():
    return ChannelsLast()


class Moves(nn.Module):
    """Values that change places: parts along each axis, other orders, and what joins them again."""
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(4, 6, 1)
        self.rows, self.columns = nn.Linear(7, 3), nn.Linear(5, 4)
        self.factors = nn.Parameter(torch.zeros(5))
        self.summands = nn.Parameter(torch.zeros(7, 1, 1))
        self.head = nn.Linear(186, 6)

    def forward(self, x):
        x = self.mix(x)  # 6 x 7 x 10
        _, five = x.split([1, 5], dim=1)
        a = five[:, -3:, 1:-1, 1::2].reshape(x.shape[0], 3, 25).transpose(1, 2)
        b = x.view(x.shape[0], 2, 3, 7, 10).permute(0, 3, 2, 4, 1).flatten(2)[:, :, 20:60]
        c = self.columns(x.reshape(x.shape[0], 6, 7, 2, 5) * self.factors + self.summands).select(3, -1)
        d = self.rows(c.transpose(2, 3))
        e = torch.cat([c[:, 2:4, :-1], c[:, -2:, 1:]], dim=2) - torch.cat([c[:, :2], c[:, 2:4, :5]], dim=2)
        f = torch.stack([d[:, :, 0], d[:, :, 2]], dim=1)
        g = x.mean((2, 3), keepdim=True).flatten(1) / (1.5 + x[:, :, 3, -4].pow(2))
        parts = [a.mean(2), b.mean(1), c.mean((1, 3)), d.flatten(1), e.mean(3), f.mean(3), g]
        return self.head(torch.cat([part.flatten(1) for part in parts], 1))


@network("moves-torchscript", (4, 7, 10), gradients=["mix", "rows", "columns", "factors", "head"], dynamo=False)
def moves_torchscript():
    return Moves()


@network("moves-dynamo", (4, 7, 10), dynamo=True)
def moves_dynamo():
    return Moves()


class Windows(nn.Module):
    """Attention in windows of a map, as Swin's without its biases, then convolutions along one side."""
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.attend, self.join = nn.Linear(6, 18), nn.Linear(6, 6)
        self.along = nn.Conv1d(6, 4, 3, padding=1, stride=2)
        self.head = nn.Linear(4 * 4, 3)

    def forward(self, x):
        y = x.view(-1, 6, 2, 2, 2, 3).permute(0, 2, 4, 3, 5, 1).reshape(-1, 6, 6)  # 2 x 2 windows of 2 x 3
        parts = self.attend(self.norm(y)).view(-1, 6, 3, 2, 3).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(parts[0] * 3**-0.5 @ parts[1].transpose(-2, -1), -1)
        y = self.join((scores @ parts[2]).transpose(1, 2).reshape(-1, 6, 6))
        x = x + y.view(-1, 2, 2, 2, 3, 6).permute(0, 5, 1, 3, 2, 4).reshape(-1, 6, 4, 6)
        return self.head(functional.avg_pool1d(self.along(x.flatten(2)), 3).flatten(1))


@network("windows-torchscript", (6, 4, 6), gradients=[""], dynamo=False)
def windows_torchscript():
    return Windows()


@network("windows-dynamo", (6, 4, 6), dynamo=True)
def windows_dynamo():
    return Windows()


class Functions(nn.Module):
    """Each of some channels of their own."""
    def __init__(self, softplus):
        super().__init__()
        self.softplus = softplus
        self.spread = nn.Conv2d(2, 60, 1)
        self.slopes, self.slope = nn.PReLU(2), nn.PReLU()
        self.head = nn.Linear(60, 7)

    def forward(self, x):
        f = functional
        functions = [
            f.relu, f.relu6, lambda x: f.leaky_relu(x, 0.3), lambda x: f.elu(x, 0.4), f.selu, f.gelu,
            lambda x: f.gelu(x, approximate="tanh"), f.silu, f.mish, self.softplus, f.softsign, torch.sigmoid,
            torch.tanh, f.hardswish, f.hardsigmoid, lambda x: f.hardtanh(x, -0.3, 0.6), lambda x: torch.exp(-x),
            self.slopes, lambda x: torch.log(x.abs() + 0.2), lambda x: torch.sqrt(x * x + 0.1),
            lambda x: 1 / (x.abs() + 0.5), lambda x: x**3 - x, lambda x: 2 - 3 * x,
            lambda x: x * torch.sigmoid(1.702 * x), self.slope, lambda x: x.clamp(min=-0.1),
            lambda x: x.clamp(max=0.2), lambda x: f.silu(x.clamp(-0.5, 0.5)), lambda x: x / torch.sqrt(1 + x**2),
            lambda x: f.relu(x) - 0.3 * f.relu(-x),
        ]
        parts = self.spread(x).chunk(30, dim=1)
        return self.head(torch.cat([g(part) for g, part in zip(functions, parts)], 1).mean((2, 3)))


@network("functions-torchscript", (2, 3, 5), gradients=[""], dynamo=False)
def functions_torchscript():
    return Functions(functional.softplus)


@network("functions-dynamo", (2, 3, 5), dynamo=True)
def functions_dynamo():
    return Functions(torch.sigmoid)  # its softplus has a branch


def draw(model, generator):
    """Distinct values for all: exporters write equal ones once, and leave out what does nothing."""
    for name, values in list(model.named_parameters()) + list(model.named_buffers()):
        if not values.is_floating_point() or "inv_freq" in name:
            continue
        drawn = torch.rand(values.shape, generator=generator) * 2 - 1
        is_factor = values.dim() == 1 and (name.endswith("weight") or name.endswith("running_var"))
        bound = 0.3 if values.dim() == 1 else 1.5 * values[0].numel()**-0.5
        values.data = 1 + drawn / 2 if is_factor else drawn * bound


def samples(shape, vocabulary, batch, generator):
    if vocabulary:
        return torch.randint(0, vocabulary, (batch, *shape), generator=generator)
    return torch.rand((batch, *shape), generator=generator) * 2 - 1


def strip(path, state):
    model = onnx.load(path)
    for tensor in model.graph.initializer:  # tracing a network in training moves its statistics
        if "running" in tensor.name:
            tensor.CopyFrom(onnx.numpy_helper.from_array(state[tensor.name].numpy(), tensor.name))
    del model.metadata_props[:], model.graph.metadata_props[:], model.graph.value_info[:], model.functions[:]
    model.doc_string = model.graph.doc_string = ""
    for part in [*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        part.doc_string = ""
        kept = [entry for entry in part.metadata_props if entry.key == KEPT_METADATA]
        del part.metadata_props[:]
        part.metadata_props.extend(kept)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def write(out, name, values):
    texts = [f"{value:.8g}" for value in values.detach().flatten().tolist()]
    for first in range(0, len(texts), VALUES_PER_ROW):
        out.write(",".join([name, str(first), *texts[first:first + VALUES_PER_ROW]]) + "\n")


def expect(out, model, images, labels, gradients):
    """The output of a test, then of one training pass the loss, its gradients and the statistics that it leaves."""
    model = model.double()
    images = images.double() if images.is_floating_point() else images
    model.eval()
    write(out, "input", images)
    write(out, "output", model(images))
    write(out, "label", labels)
    model.train()
    scores = model(images)
    loss = functional.cross_entropy(scores.flatten(0, -2), labels.flatten())
    loss.backward()
    write(out, "loss", loss)
    for name, parameter in model.named_parameters():
        if any(name.startswith(begin) for begin in gradients):
            write(out, "gradient " + name, parameter.grad)
    for name, state in model.named_buffers():
        if "running" in name:
            write(out, "state " + name, state)


def make(name):
    create, shape, vocabulary, gradients, options = NETWORKS[name]
    generator = torch.Generator().manual_seed(20160716)
    torch.manual_seed(1)
    model = create()
    draw(model, generator)
    images = samples(shape, vocabulary, BATCH, generator)
    path = os.path.join(FOLDER, name + ".onnx")
    if not options["dynamo"]:
        options = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False, **options}
    exported = copy.deepcopy(model).train(options.get("training") == torch.onnx.TrainingMode.TRAINING)
    torch.onnx.export(exported, (images[:1],), path, external_data=False, verbose=False, **options)
    strip(path, model.state_dict())
    model.eval()
    with torch.no_grad():
        scores = model(images)
    labels = torch.randint(0, scores.shape[-1], scores.shape[:-1], generator=generator)
    with open(os.path.join(FOLDER, name + ".csv"), "w", encoding="ascii") as out:
        out.write("tensor,first element,values\n")
        expect(out, model, images, labels, gradients)


for wanted in sys.argv[1:] or NETWORKS:
    make(wanted)
