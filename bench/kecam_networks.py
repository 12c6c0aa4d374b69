"""Networks of keras-cv-attention-models, by name: what bench/library_models.py writes. Needs that package and tf_keras."""
import functools
import inspect
import sys

import keras_cv_attention_models as K
import tensorflow as tf

C = dict(pretrained=None, num_classes=40, classifier_activation=None)


def cls(path, sizes=(96, 128, 224), **kw):
    return path, sizes, {**C, **kw}


def det(path, sizes=(128, 256), **kw):
    return path, sizes, dict(pretrained=None, num_classes=8, **kw)


TABLE = {
    "levit": cls("levit.LeViT128S"), "coatnet": cls("coatnet.CoAtNetT"), "cmt": cls("cmt.CMTTiny"), "cmt_torch": cls("cmt.CMTTiny_torch"), "vit": cls("beit.ViTTinyPatch16"),
    "edgenext": cls("edgenext.EdgeNeXt_XX_Small"), "efficientformer": cls("efficientformer.EfficientFormerL1"), "efficientformer2": cls("efficientformer.EfficientFormerV2S0"),
    "efficientvit_b": cls("efficientvit.EfficientViT_B0"), "efficientvit_m": cls("efficientvit.EfficientViT_M0"), "fastvit": cls("fastvit.FastViT_T8"), "gcvit": cls("gcvit.GCViT_XXTiny", (224,)),
    "ghostnet": cls("ghostnet.GhostNet_050"), "ghostnet2": cls("ghostnet.GhostNetV2_100"), "gpvit": cls("gpvit.GPViT_L1"), "halonet": cls("halonet.HaloNet26T", (128,)), "hornet": cls("hornet.HorNetTiny"),
    "iformer": cls("iformer.IFormerSmall"), "inceptionnext": cls("inceptionnext.InceptionNeXtTiny"), "lcnet": cls("lcnet.LCNet050") if hasattr(K, "lcnet") else cls("mobilenetv3_family.LCNet050"),
    "maxvit": cls("maxvit.MaxViT_Tiny", (224,)), "mobilevit": cls("mobilevit.MobileViT_XXS"), "mobilevit2": cls("mobilevit.MobileViT_V2_050"), "moganet": cls("moganet.MogaNetXtiny"),
    "nat": cls("nat.NAT_Mini", (224,)), "dinat": cls("nat.DiNAT_Mini", (224,)), "nfnet": cls("nfnets.NFNetL0"), "pvt2": cls("pvt.PVT_V2B0"), "pvt2_linear": cls("pvt.PVT_V2B2_linear"),
    "repvit": cls("repvit.RepViT_M09"), "resmlp": cls("mlp_family.ResMLP12", (224,)), "gmlp": cls("mlp_family.GMLPTiny16", (224,)), "mixer": cls("mlp_family.MLPMixerS32", (224,)), "wavemlp": cls("mlp_family.WaveMLP_T"),
    "tinyvit": cls("tinyvit.TinyViT_5M"), "uniformer": cls("uniformer.UniformerSmall32"), "vanillanet": cls("vanillanet.VanillaNet5"), "volo": cls("volo.VOLO_d1"),
    "aotnet": cls("aotnet.AotNet50"), "resnest": cls("resnest.ResNest50"), "regnetz": cls("resnet_family.RegNetZB16"), "regnetz_evo": cls("resnet_family.RegNetZC16_EVO"), "resnetq": cls("resnet_family.ResNet51Q"),
    "botnet": cls("botnet.BotNextECA26T"), "botnet_se": cls("botnet.BotNetSE33T"), "caformer": cls("caformer.CAFormerS18"), "coat": cls("coat.CoaTLiteTiny"), "coat_full": cls("coat.CoaTTiny"), "convnext2": cls("convnext.ConvNeXtV2Atto"), "cotnet": cls("cotnet.CotNet50"),
    "cspnext": cls("cspnext.CSPNeXtTiny"), "davit": cls("davit.DaViT_T"), "fasternet": cls("fasternet.FasterNetT0"), "fastervit": cls("fastervit.FasterViT0", (224,)), "hiera": cls("hiera.HieraTiny", (224,)),
    "swin2": cls("swin_transformer_v2.SwinTransformerV2Tiny_window8", (128, 256)), "fbnet": cls("mobilenetv3_family.FBNetV3B"), "tinynet": cls("mobilenetv3_family.TinyNetE"),
    "hornet_gf": cls("hornet.HorNetTinyGF", (224,)), "eva02": cls("beit.EVA02TinyPatch14", (112,)), "dinov2": cls("beit.DINOv2_ViT_Small14", (112,)), "flexivit": cls("beit.FlexiViTSmall", (112, 240)), "vit5": cls("beit.ViT5_Small_Patch16"),
    "beit": ("beit.Beit", (96,), dict(depth=2, embed_dim=96, num_heads=3, **C)),
    "yolox": det("yolox.YOLOXNano"), "yolov7": det("yolov7.YOLOV7_Tiny"), "yolov8": det("yolov8.YOLOV8_N"), "yolov8_seg": det("yolov8.YOLOV8_N_SEG"), "yolonas": det("yolov8.YOLO_NAS_S"), "yolor": det("yolor.YOLOR_CSP"), "efficientdet": det("efficientdet.EfficientDetLite0", (128, 256)), "efficientdet_d0": det("efficientdet.EfficientDetD0", (128, 256)),
    "gpt2": ("gpt2.GPT2", None, dict(num_blocks=2, embedding_size=64, num_heads=4, max_block_size=32, vocab_size=200, pretrained=None)),
    "llama2": ("llama2.LLaMA2", None, dict(num_blocks=2, embedding_size=64, hidden_dim=96, num_heads=4, block_size=32, vocab_size=200, pretrained=None)),
    "vittext": ("beit.ViTText", None, dict(pretrained=None)),
    "unet": ("stable_diffusion.UNet", None, dict(num_blocks=[1, 1], hidden_channels=32, num_attention_blocks=[1, 1], num_heads=2, input_shape=(16, 16, 4), pretrained=None)),
}


def shallow(module):
    """Two blocks of each stage at most."""
    for n, f in list(vars(module).items()):
        if inspect.isfunction(f) and not hasattr(f, "_shallow"):
            try:
                ps = inspect.signature(f).parameters
            except ValueError:
                continue
            if "num_blocks" not in ps or "model_name" not in ps:
                continue
            at = list(ps).index("num_blocks")

            @functools.wraps(f)
            def g(*a, f=f, at=at, **kw):
                cut = lambda v: [min(x, 2) if isinstance(x, int) else x for x in v] if isinstance(v, (list, tuple)) else min(v, 2) if isinstance(v, int) else v
                if "num_blocks" in kw:
                    kw["num_blocks"] = cut(kw["num_blocks"])
                elif len(a) > at:
                    a = (*a[:at], cut(a[at]), *a[at + 1:])
                return f(*a, **kw)
            g._shallow = True
            setattr(module, n, g)


def build(path, sizes, kw):
    if path.split(".")[1] not in ("GPT2", "LLaMA2", "UNet"):
        f = K
        for p in path.split("."):
            f = getattr(f, p)
        shallow(sys.modules[f.__module__])
    f = K
    for p in path.split("."):
        f = getattr(f, p)
    if sizes is None:
        return f(**kw)
    for i, s in enumerate(sizes):
        try:
            return f(input_shape=(s, s, 3), **kw)
        except Exception:
            tf.keras.backend.clear_session()
            if i + 1 == len(sizes):
                raise


MODELS = {name: functools.partial(build, *row) for name, row in TABLE.items()}
