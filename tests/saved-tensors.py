# Bytes that PyTorch saves for backward, to compare with engine/model/saved.c: for each sample, and with any batch
# (copies of weights). Tensors are fake ones of FakeTensorMode on a GPU that need not exist. So autograd and autocast
# choose as on one, and nothing is computed. Storage is counted once, without parameters and samples.
#
#   python3 tests/saved-tensors.py          (pip install torch torchvision timm transformers)
import sys

import timm
import torch
import torch.nn.functional as F
import torchvision
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode

torch.cuda.amp.common.amp_definitely_not_available = lambda: False  # autocast without a GPU
torch.cuda.is_bf16_supported = lambda *_: True
timm.layers.set_fused_attn(True)


def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **_):
    """The fused kernel that a GPU would choose."""
    if torch.is_autocast_enabled("cuda"):
        q, k, v = (t.to(torch.bfloat16) for t in (q, k, v))
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, False, scale=scale)[0]
    return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, dropout_p, is_causal)[0]


F.scaled_dot_product_attention = attention


def bert():
    # without the dropouts of scenarios/models/, whose masks test_saved.c adds
    config = transformers.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                                     intermediate_size=4096, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    return transformers.BertForPreTraining(config)


def gpt2(**sizes):
    none = {"embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(activation_function="gelu", use_cache=False, **none,
                                                                **sizes))


def bert_loss(model, tokens):
    hidden, pooled = model.bert(tokens)[:2]
    words, pair = model.cls(hidden[:, ::6], pooled)  # every sixth position, as in bert-large.yaml
    return F.cross_entropy(words.flatten(0, 1).float(), tokens[:, ::6].flatten()) + F.cross_entropy(pair, tokens[:, 0])


def image_loss(model, images):
    return F.cross_entropy(model(images), torch.zeros(len(images), dtype=torch.long))


MODELS = {
    "resnet18": (torchvision.models.resnet18, image_loss),
    "resnet50-v1.5": (torchvision.models.resnet50, image_loss),
    "resnet152": (torchvision.models.resnet152, image_loss),
    "vgg16": (torchvision.models.vgg16, image_loss),
    "vit-b16": (lambda: timm.create_model("vit_base_patch16_224"), image_loss),
    "bert-large": (bert, bert_loss),
    "gpt2": (gpt2, lambda model, tokens: model(tokens, labels=tokens).loss),
    "gpt2-medium": (lambda: gpt2(n_embd=1024, n_layer=24, n_head=16),
                    lambda model, tokens: model(tokens, labels=tokens).loss),
}


def to_fake_gpu(model):
    fake = {}
    for module in model.modules():
        for name, tensor in module._parameters.items():
            if tensor is not None:
                fake.setdefault(id(tensor), torch.nn.Parameter(torch.empty(tensor.shape)))
                module._parameters[name] = fake[id(tensor)]
        for name, tensor in module._buffers.items():
            if tensor is not None:
                module._buffers[name] = torch.empty(tensor.shape, dtype=tensor.dtype)


def saved_bytes(name, is_half, batch):
    make, loss = MODELS[name]
    model = make().train()
    saved, kept = {}, []
    with FakeTensorMode(), torch.device("cuda"):
        to_fake_gpu(model)
        positions = {"bert-large": 512, "gpt2": 1024, "gpt2-medium": 1024}.get(name)
        samples = (torch.zeros(batch, positions, dtype=torch.long) if positions else torch.empty(batch, 3, 224, 224))
        own = {t.untyped_storage()._cdata for t in [samples, *model.parameters(), *model.buffers()]}

        def pack(tensor):
            kept.append(tensor)
            saved[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=is_half):
                loss(model, samples)
    return sum(n for key, n in saved.items() if key not in own)


print("PyTorch", torch.__version__)
for name in sys.argv[1:] or MODELS:
    for is_half in (False, True):
        two, four = (saved_bytes(name, is_half, batch) for batch in (2, 4))
        numbers = f"{(four - two) / 2e6:.2f}, {(2 * two - four) / 1e6:.2f}"
        print(f'{{"{name}", {str(is_half).lower()}, {numbers}}},', flush=True)
