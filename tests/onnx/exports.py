"""Exports networks of torchvision, timm, transformers and PyTorch, with PyTorch's own counts.

    python3 exports.py FOLDER [NAME...]

Writes FOLDER/NAME.onnx and a row of FOLDER/counts.csv for each: exporter, parameters, FLOPs of forward for one sample
by FlopCounterMode, and the options of psd-sim. All weights are random. Needs torch, torchvision, timm, transformers,
onnx and onnxscript. Each network has a process of its own, with a limit of memory and time. A name of this list is
skipped if its row exists.
"""
import csv
import importlib
import os
import resource
import signal
import sys
import traceback

MOST_BYTES = 14 << 30
MOST_SECONDS = 420
FIELDS = ["name", "exporter", "parameters", "flops", "outputs"]
NETWORKS = {}


def network(name, make, exporter):
    NETWORKS[name] = (make, exporter)


# ---- torchvision ----

def torchvision_model(name, shape=(3, 224, 224), **options):
    def make():
        import torch
        import torchvision
        model = torchvision.models.get_model(name, weights=None, **options)
        return model, (torch.randn(1, *shape),)
    return make


def detector(name, side=320):
    def make():
        import torch
        import torchvision
        sizes = {} if name.startswith("ssd") else {"min_size": side, "max_size": side}
        model = torchvision.models.get_model(name, weights=None, weights_backbone=None, **sizes)
        return model, ([torch.rand(3, side, side)],)
    return make


for _name, _exporter in [("alexnet", "torchscript"), ("vgg11_bn", "dynamo"), ("resnet18", "torchscript"),
                         ("resnet50", "dynamo"), ("resnext50_32x4d", "torchscript"),
                         ("wide_resnet50_2", "dynamo"), ("densenet121", "torchscript"),
                         ("squeezenet1_1", "dynamo"),
                         ("mobilenet_v2", "dynamo"), ("mobilenet_v3_small", "torchscript"),
                         ("mnasnet1_0", "dynamo"), ("shufflenet_v2_x1_0", "torchscript"),
                         ("efficientnet_b0", "dynamo"), ("efficientnet_v2_s", "torchscript"),
                         ("regnet_y_400mf", "dynamo"), ("convnext_tiny", "torchscript"),
                         ("swin_t", "torchscript"), ("swin_v2_t", "dynamo"),
                         ("maxvit_t", "torchscript")]:
    network(_name, torchvision_model(_name), _exporter)
for _name, _exporter in [("mobilenet_v3_large", "dynamo"), ("regnet_x_800mf", "torchscript"),
                         ("vit_b_16", "dynamo"), ("vit_b_32", "dynamo"), ("convnext_small", "dynamo")]:
    network(_name, torchvision_model(_name), _exporter)
# without the heads for training alone, which an export of eval() does not have
network("googlenet", torchvision_model("googlenet", aux_logits=False, init_weights=False), "torchscript")
network("inception_v3",
        torchvision_model("inception_v3", (3, 299, 299), aux_logits=False, init_weights=False), "dynamo")
network("fcn_resnet50", torchvision_model("fcn_resnet50", weights_backbone=None), "torchscript")
network("deeplabv3_mobilenet", torchvision_model("deeplabv3_mobilenet_v3_large", weights_backbone=None), "dynamo")
network("lraspp_mobilenet", torchvision_model("lraspp_mobilenet_v3_large", weights_backbone=None), "torchscript")
network("r3d_18", torchvision_model("r3d_18", (3, 8, 112, 112)), "torchscript")
network("mvit_v2_s", torchvision_model("mvit_v2_s", (3, 16, 224, 224)), "dynamo")
network("swin3d_t", torchvision_model("swin3d_t", (3, 8, 112, 112)), "torchscript")
network("s3d", torchvision_model("s3d", (3, 16, 224, 224)), "dynamo")
network("ssdlite_mobilenet", detector("ssdlite320_mobilenet_v3_large"), "torchscript")
network("retinanet_resnet50", detector("retinanet_resnet50_fpn"), "torchscript")
network("fcos_resnet50", detector("fcos_resnet50_fpn"), "torchscript")
network("ssd300_vgg16", detector("ssd300_vgg16", 300), "torchscript")
network("maskrcnn_resnet50", detector("maskrcnn_resnet50_fpn"), "torchscript")
network("deeplabv3_resnet50", torchvision_model("deeplabv3_resnet50", weights_backbone=None), "torchscript")
network("fasterrcnn_mobilenet", detector("fasterrcnn_mobilenet_v3_large_320_fpn"), "torchscript")


# ---- timm ----

def timm_model(name, side=224):
    def make():
        import timm
        import torch
        return timm.create_model(name, pretrained=False), (torch.randn(1, 3, side, side),)
    return make


for _name, _exporter in [("convnextv2_tiny", "dynamo"), ("efficientnet_lite0", "torchscript"),
                         ("vit_small_patch16_224", "dynamo"), ("deit_tiny_distilled_patch16_224", "torchscript"),
                         ("swin_tiny_patch4_window7_224", "dynamo"), ("mixer_s32_224", "torchscript"),
                         ("regnetx_004", "torchscript"), ("dm_nfnet_f0", "torchscript"),
                         ("res2net50_26w_4s", "torchscript"), ("ecaresnet26t", "dynamo"),
                         ("coat_tiny", "torchscript"), ("xcit_tiny_12_p16_224", "dynamo"),
                         ("cspresnet50", "dynamo"), ("hrnet_w18_small", "torchscript"),
                         ("poolformer_s12", "dynamo"), ("gmlp_s16_224", "torchscript")]:
    network("timm_" + _name, timm_model(_name), _exporter)
for _name, _exporter, _side in [("mobilevit_s", "dynamo", 256), ("cait_xxs24_224", "torchscript", 224),
                                ("beit_base_patch16_224", "torchscript", 224), ("resnetv2_50", "dynamo", 224),
                                ("davit_tiny", "dynamo", 224), ("gcvit_xxtiny", "torchscript", 224),
                                ("pvt_v2_b0", "dynamo", 224), ("levit_128s", "torchscript", 224),
                                ("ghostnet_100", "dynamo", 224), ("efficientformer_l1", "dynamo", 224),
                                ("swinv2_tiny_window8_256", "torchscript", 256), ("botnet26t_256", "dynamo", 256),
                                ("mvitv2_tiny", "torchscript", 224), ("eva02_tiny_patch14_224", "dynamo", 224),
                                ("repvgg_a2", "torchscript", 224), ("tiny_vit_5m_224", "dynamo", 224)]:
    network("timm_" + _name, timm_model(_name, _side), _exporter)


# ---- transformers ----

def transformer(config, model, inputs, **settings):
    """inputs: names with types and shapes; whole numbers are drawn for those of the type int."""
    def make():
        import torch
        import transformers

        class Results(torch.nn.Module):
            """The network's results alone, without the keys and values that it keeps for the next token."""
            def __init__(self):
                super().__init__()
                self.network = getattr(transformers, model)(getattr(transformers, config)(**settings))
                self.network.config.use_cache = False

            def forward(self, *values):
                results = self.network(**dict(zip(inputs, values)))
                return results["logits_per_image" if "logits_per_image" in results else "logits"]
        drawn = [torch.randint(3, 90, shape) if kind is int else torch.randn(*shape)
                 for kind, *shape in inputs.values()]
        return Results(), tuple(drawn)
    return make


TOKENS = {"input_ids": (int, 1, 32)}
IMAGE = {"pixel_values": (float, 1, 3, 64, 64)}
SMALL = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
for _name, _config, _model, _exporter, _inputs, _settings in [
        ("bert", "BertConfig", "BertForMaskedLM", "torchscript", TOKENS, SMALL),
        ("bert_classes", "BertConfig", "BertForSequenceClassification", "dynamo", TOKENS, SMALL),
        ("distilbert", "DistilBertConfig", "DistilBertForMaskedLM", "dynamo", TOKENS,
         dict(dim=64, n_layers=2, n_heads=4, hidden_dim=128)),
        ("roberta", "RobertaConfig", "RobertaForMaskedLM", "torchscript", TOKENS, SMALL),
        ("albert", "AlbertConfig", "AlbertForMaskedLM", "dynamo", TOKENS, dict(SMALL, embedding_size=32)),
        ("electra", "ElectraConfig", "ElectraForPreTraining", "torchscript", TOKENS, dict(SMALL, embedding_size=32)),
        ("gpt2", "GPT2Config", "GPT2LMHeadModel", "dynamo", TOKENS, dict(n_embd=64, n_layer=2, n_head=4)),
        ("opt", "OPTConfig", "OPTForCausalLM", "dynamo", TOKENS,
         dict(hidden_size=64, word_embed_proj_dim=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128)),
        ("llama", "LlamaConfig", "LlamaForCausalLM", "dynamo", TOKENS, dict(SMALL, num_key_value_heads=2)),
        ("mistral", "MistralConfig", "MistralForCausalLM", "dynamo", TOKENS, dict(SMALL, num_key_value_heads=2)),
        ("qwen2", "Qwen2Config", "Qwen2ForCausalLM", "dynamo", TOKENS, dict(SMALL, num_key_value_heads=2)),
        ("phi", "PhiConfig", "PhiForCausalLM", "dynamo", TOKENS, dict(SMALL, num_key_value_heads=2)),
        ("t5", "T5Config", "T5ForConditionalGeneration", "dynamo",
         dict(TOKENS, decoder_input_ids=(int, 1, 16)), dict(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)),
        ("bart", "BartConfig", "BartForConditionalGeneration", "dynamo",
         dict(TOKENS, decoder_input_ids=(int, 1, 16)),
         dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
              encoder_ffn_dim=128, decoder_ffn_dim=128)),
        ("whisper", "WhisperConfig", "WhisperForConditionalGeneration", "dynamo",
         {"input_features": (float, 1, 80, 3000), "decoder_input_ids": (int, 1, 16)},
         dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
              encoder_ffn_dim=128, decoder_ffn_dim=128)),
        ("vit", "ViTConfig", "ViTForImageClassification", "dynamo", IMAGE, dict(SMALL, image_size=64)),
        ("clip", "CLIPConfig", "CLIPModel", "dynamo",
         {"input_ids": (int, 1, 16), "pixel_values": (float, 1, 3, 64, 64)},
         dict(text_config=SMALL, vision_config=dict(SMALL, image_size=64, patch_size=16), projection_dim=32)),
        ("segformer", "SegformerConfig", "SegformerForSemanticSegmentation", "torchscript", IMAGE, {}),
        ("deberta", "DebertaV2Config", "DebertaV2ForMaskedLM", "torchscript", TOKENS, SMALL),
        ("gpt_neo", "GPTNeoConfig", "GPTNeoForCausalLM", "dynamo", TOKENS,
         dict(hidden_size=64, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]])),
        ("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", "dynamo", TOKENS, SMALL),
        ("bloom", "BloomConfig", "BloomForCausalLM", "dynamo", TOKENS, dict(hidden_size=64, n_layer=2, n_head=4)),
        ("gemma", "GemmaConfig", "GemmaForCausalLM", "dynamo", TOKENS,
         dict(SMALL, num_key_value_heads=2, head_dim=16)),
        ("qwen3", "Qwen3Config", "Qwen3ForCausalLM", "dynamo", TOKENS,
         dict(SMALL, num_key_value_heads=2, head_dim=16)),
        ("mpnet", "MPNetConfig", "MPNetForMaskedLM", "torchscript", TOKENS, SMALL),
        ("marian", "MarianConfig", "MarianMTModel", "torchscript", dict(TOKENS, decoder_input_ids=(int, 1, 16)),
         dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
              encoder_ffn_dim=128, decoder_ffn_dim=128)),
        ("wav2vec2", "Wav2Vec2Config", "Wav2Vec2ForCTC", "dynamo", {"input_values": (float, 1, 16000)},
         dict(SMALL, num_conv_pos_embedding_groups=4, num_conv_pos_embeddings=16)),
        ("dinov2", "Dinov2Config", "Dinov2ForImageClassification", "dynamo", IMAGE, dict(SMALL, image_size=64)),
        ("swin", "SwinConfig", "SwinForImageClassification", "torchscript", {"pixel_values": (float, 1, 3, 224, 224)},
         {}),
        ("convbert", "ConvBertConfig", "ConvBertForMaskedLM", "torchscript", TOKENS,
         dict(SMALL, embedding_size=32))]:
    network("hf_" + _name, transformer(_config, _model, _inputs, **_settings), _exporter)


# ---- PyTorch's own modules ----

def lstm():
    import torch

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(1000, 64)
            self.lstm = torch.nn.LSTM(64, 96, 2, bidirectional=True, batch_first=True)
            self.gru = torch.nn.GRU(192, 48, batch_first=True)
            self.head = torch.nn.Linear(48, 10)

        def forward(self, tokens):
            return self.head(self.gru(self.lstm(self.table(tokens))[0])[0])
    return Tagger(), (torch.randint(0, 1000, (1, 20)),)


def seq2seq():
    import torch
    model = torch.nn.Transformer(64, 4, 2, 2, 128, batch_first=True)
    return model, (torch.randn(1, 24, 64), torch.randn(1, 12, 64))


def unet():
    import torch
    from torch import nn

    class Double(nn.Sequential):
        def __init__(self, inputs, outputs):
            super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            sides = [16, 32, 64, 128]
            self.down = nn.ModuleList(Double(a, b) for a, b in zip([3] + sides, sides))
            self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sides, sides[1:]))
            self.join = nn.ModuleList(Double(2 * a, a) for a in sides[:-1])
            self.head = nn.Conv2d(16, 2, 1)

        def forward(self, x):
            kept = []
            for block in self.down:
                x = block(x)
                kept.append(x)
                x = nn.functional.max_pool2d(x, 2)
            x = kept.pop()
            for up, join in zip(reversed(self.up), reversed(self.join)):
                x = join(torch.cat([kept.pop(), up(x)], 1))
            return self.head(x)
    return Unet(), (torch.randn(1, 3, 96, 96),)


network("torch_unet", unet, "torchscript")
network("torch_lstm", lstm, "torchscript")
network("torch_transformer", seq2seq, "dynamo")


# ---- one network ----

def count_flops(model, arguments):
    """Counts with every product as an operator of its own, since the counter passes over fused attention and layers of
    recurrent networks of the processor's libraries."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        with torch.backends.mkldnn.flags(enabled=False):
            model(*arguments)
    return counter.get_total_flops()


def export(folder, name):
    import onnx
    import torch
    make, exporter = NETWORKS[name]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, arguments = make()
    model.eval()
    path = os.path.join(folder, name + ".onnx")
    flops = count_flops(model, arguments)
    with torch.no_grad():
        torch.onnx.export(model, arguments, path, dynamo=exporter == "dynamo")
    outputs = [o.name for o in onnx.load(path, load_external_data=False).graph.output]
    row = [name, exporter, sum(p.numel() for p in model.parameters()), flops, " ".join(outputs)]
    with open(os.path.join(folder, "counts.csv"), "a", newline="") as file:
        csv.writer(file).writerow(row)


def start(folder, name):
    """Exports one network in a process of its own, which shares the imports of this one. Returns its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(os.path.join(folder, name + ".log"), "w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    signal.alarm(MOST_SECONDS)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    try:
        export(folder, name)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "counts.csv")
    if not os.path.exists(path):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerow(FIELDS)
    with open(path, newline="") as file:
        known = {row["name"] for row in csv.DictReader(file)}
    for library in ("torch", "torchvision", "transformers", "timm", "onnx", "onnxscript"):
        importlib.import_module(library)
    for name in names or NETWORKS:
        if name not in known:
            status = start(folder, name)
            print(name, "exported" if status == 0 else "failed (%d), see %s.log" % (status, name), flush=True)


if __name__ == "__main__":
    main()
