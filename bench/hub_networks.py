"""Networks of keras-hub, small, by name: what bench/library_models.py writes. Needs keras-hub."""
import keras
import keras_hub

M = keras_hub.models
V = 200  # words
L = dict(num_layers=2, hidden_dim=64, intermediate_dim=128)
B = dict(vocabulary_size=V, num_heads=4, **L)
G = dict(vocabulary_size=V, num_query_heads=4, num_key_value_heads=2, **L)


def text(cls, free=False, **kw):
    def make():
        m = getattr(M, cls)(**kw)
        if free:
            return m
        ins = {k: keras.Input((24,) if len(v.shape) == 2 else v.shape[1:], dtype=v.dtype, name=k) for k, v in m.input.items()} if isinstance(m.input, dict) else keras.Input((24,), dtype="int32")
        return keras.Model(ins, m(ins))
    return make


def mobilenet():
    return M.MobileNetBackbone(stackwise_expansion=[[40, 56], [64, 144, 144], [72, 72], [144, 288, 288]], stackwise_num_blocks=[2, 3, 2, 3], stackwise_num_filters=[[16, 16], [24, 24, 24], [24, 24], [48, 48, 48]],
        stackwise_kernel_size=[[3, 3], [5, 5, 5], [5, 5], [5, 5, 5]], stackwise_num_strides=[[2, 1], [2, 1, 1], [1, 1], [2, 1, 1]], stackwise_se_ratio=[[None, None], [.25, .25, .25], [.3, .3], [.3, .25, .25]],
        stackwise_activation=[["relu", "relu"], ["hard_swish"] * 3, ["hard_swish"] * 2, ["hard_swish"] * 3], stackwise_padding=[[1, 1], [2, 2, 2], [2, 2], [2, 2, 2]], output_num_filters=288, input_activation="hard_swish",
        output_activation="hard_swish", input_num_filters=16, depthwise_filters=8, depthwise_stride=2, depthwise_residual=False, last_layer_filter=1024, squeeze_and_excite=.5, image_shape=(96, 96, 3))


def resnet(size=128, **kw):
    a = dict(input_conv_filters=[16], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 64, 96], stackwise_num_blocks=[2, 2, 2], stackwise_num_strides=[1, 2, 2], block_type="basic_block", image_shape=(size, size, 3))
    a.update(kw)
    return M.ResNetBackbone(**a)


def csp(**kw):
    return M.CSPNetBackbone(stem_filters=16, stem_kernel_size=3, stem_strides=2, stackwise_depth=[1, 2, 2], stackwise_strides=[2, 2, 2], stackwise_num_filters=[32, 48, 64], block_type="dark_block", down_growth=True, image_shape=(96, 96, 3), **{**dict(stage_type="csp"), **kw})


def clip():
    from keras_hub.src.models.clip.clip_vision_encoder import CLIPVisionEncoder
    from keras_hub.src.models.clip.clip_text_encoder import CLIPTextEncoder
    v = CLIPVisionEncoder(patch_size=16, hidden_dim=64, num_layers=2, num_heads=4, intermediate_dim=128, intermediate_activation="quick_gelu", image_shape=(64, 64, 3))
    t = CLIPTextEncoder(vocabulary_size=V, embedding_dim=64, hidden_dim=64, num_layers=2, num_heads=4, intermediate_dim=128, intermediate_activation="quick_gelu", max_sequence_length=24)
    m = M.CLIPBackbone(v, t, 64)
    ins = {k: keras.Input((24,) if "token" in k else (64, 64, 3), dtype=x.dtype, name=k) for k, x in m.input.items()}
    return keras.Model(ins, m(ins))


def siglip():
    from keras_hub.src.models.siglip.siglip_vision_encoder import SigLIPVisionEncoder
    from keras_hub.src.models.siglip.siglip_text_encoder import SigLIPTextEncoder
    v = SigLIPVisionEncoder(patch_size=16, hidden_dim=64, num_layers=2, num_heads=4, intermediate_dim=128, image_shape=(64, 64, 3))
    t = SigLIPTextEncoder(vocabulary_size=V, embedding_dim=64, hidden_dim=64, num_layers=2, num_heads=4, intermediate_dim=128, max_sequence_length=24)
    m = M.SigLIPBackbone(v, t)
    ins = {k: keras.Input((24,) if "token" in k else (64, 64, 3), dtype=x.dtype, name=k) for k, x in m.input.items()}
    return keras.Model(ins, m(ins))


def mit(size=96):
    return M.MiTBackbone(layerwise_depths=[1, 1, 1, 1], image_shape=(size, size, 3), hidden_dims=[16, 32, 64, 96], num_layers=4, layerwise_num_heads=[1, 2, 4, 8], layerwise_sr_ratios=[8, 4, 2, 1], max_drop_path_rate=.1, layerwise_patch_sizes=[7, 3, 3, 3], layerwise_strides=[4, 2, 2, 2])


def vitdet(size=128, channels=32):
    return M.ViTDetBackbone(hidden_size=64, num_layers=2, intermediate_dim=128, num_heads=4, global_attention_layer_indices=[1], image_shape=(size, size, 3), patch_size=16, num_output_channels=channels, window_size=3)


def sam():
    from keras_hub.src.models.sam.sam_prompt_encoder import SAMPromptEncoder
    from keras_hub.src.models.sam.sam_mask_decoder import SAMMaskDecoder
    p = SAMPromptEncoder(hidden_size=32, image_embedding_size=(8, 8), input_image_size=(128, 128), mask_in_channels=16)
    d = SAMMaskDecoder(num_layers=2, hidden_size=32, intermediate_dim=128, num_heads=4, embedding_dim=32, num_multimask_outputs=3, iou_head_depth=3, iou_head_hidden_dim=32)
    m = M.SAMBackbone(image_encoder=vitdet(), prompt_encoder=p, mask_decoder=d)
    sizes = {"images": (128, 128, 3), "points": (3, 2), "labels": (3,), "boxes": (1, 2, 2), "masks": (1, 32, 32, 1)}
    ins = {k: keras.Input(sizes[k], name=k, dtype=x.dtype) for k, x in m.input.items()}
    return keras.Model(ins, m(ins))


def whisper():
    m = M.WhisperBackbone(vocabulary_size=V, num_mels=16, max_encoder_sequence_length=100, max_decoder_sequence_length=24, num_heads=4, **L)
    sizes = {"encoder_features": (100, 16), "decoder_token_ids": (24,), "decoder_padding_mask": (24,)}
    ins = {k: keras.Input(sizes[k], name=k, dtype=x.dtype) for k, x in m.input.items()}
    return keras.Model(ins, m(ins))


def moonshine():
    m = M.MoonshineBackbone(vocabulary_size=V, filter_dim=64, encoder_num_layers=2, decoder_num_layers=2, hidden_dim=64, intermediate_dim=128, encoder_num_heads=4, decoder_num_heads=4)
    ins = {k: keras.Input((4000, 1) if len(x.shape) == 3 else (24,) if "decoder" in k else (4000,), name=k, dtype=x.dtype) for k, x in m.input.items()}
    return keras.Model(ins, m(ins))


def paligemma():
    m = M.PaliGemmaBackbone(vocabulary_size=V, image_size=32, num_layers=2, num_query_heads=4, num_key_value_heads=1, hidden_dim=64, intermediate_dim=128, head_dim=16, vit_patch_size=16, vit_num_heads=2, vit_hidden_dim=32, vit_num_layers=2, vit_intermediate_dim=64)
    ins = {k: keras.Input((32, 32, 3) if "image" in k else (24,), name=k, dtype=x.dtype) for k, x in m.input.items()}
    return keras.Model(ins, m(ins))


def parseq():
    v = M.ViTBackbone(image_shape=(32, 64, 3), patch_size=(8, 8), num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, use_class_token=False, name="encoder")
    m = M.PARSeqBackbone(vocabulary_size=40, max_label_length=12, image_encoder=v, num_decoder_heads=4, num_decoder_layers=1, decoder_hidden_dim=64, decoder_mlp_dim=128)
    ins = {k: keras.Input((32, 64, 3) if "image" in k else (12,), name=k, dtype=x.dtype) for k, x in m.input.items()}
    return keras.Model(ins, m(ins))


def flux():
    return M.FluxBackbone(input_channels=16, hidden_size=64, mlp_ratio=2., num_heads=4, depth=2, depth_single_blocks=2, axes_dim=[4, 6, 6], theta=10000, use_bias=True, guidance_embed=True, image_shape=(16, 16), text_shape=(8, 64), image_ids_shape=(16, 3), text_ids_shape=(8, 3), y_shape=(64,))


def dino2():
    return M.DINOV2Backbone(patch_size=14, num_layers=2, hidden_dim=64, num_heads=4, intermediate_dim=128, use_swiglu_ffn=True, num_register_tokens=2, use_mask_token=False, image_shape=(112, 112, 3), position_embedding_shape=(70, 70))


def depth_anything():
    b = M.DINOV2Backbone(patch_size=14, num_layers=4, hidden_dim=64, num_heads=4, intermediate_dim=128, use_mask_token=False, image_shape=(112, 112, 3), position_embedding_shape=(112, 112), apply_layernorm=True)
    return M.DepthAnythingBackbone(image_encoder=b, reassemble_factors=[4, 2, 1, .5], neck_hidden_dims=[16, 16, 16, 16], fusion_hidden_dim=16, head_hidden_dim=8, head_in_index=-1, feature_keys=["stage1", "stage2", "stage3", "stage4"])


def task(make, cls, **kw):
    return lambda: getattr(M, cls)(backbone=make(), preprocessor=None, **kw)


def videoprism():
    return M.VideoPrismBackbone(num_frames=4, patch_size=16, hidden_dim=64, intermediate_dim=128, num_heads=4, num_spatial_layers=2, num_temporal_layers=2, num_auxiliary_layers=0, image_shape=(64, 64, 3))


def hgnet():
    return M.HGNetV2Backbone(depths=[1, 1], embedding_size=8, hidden_sizes=[16, 32], stem_channels=[3, 8, 16], hidden_act="relu", use_learnable_affine_block=True, stackwise_stage_filters=[(16, 16, 32, 1, 3, 3), (32, 16, 64, 1, 3, 3)], apply_downsample=[False, True], use_lightweight_conv_block=[False, True], image_shape=(96, 96, 3))


def vae():
    from keras_hub.src.models.vae.vae_backbone import VAEBackbone
    return VAEBackbone(encoder_num_filters=[32, 32, 32], encoder_num_blocks=[1, 1, 1], decoder_num_filters=[32, 32, 32], decoder_num_blocks=[1, 1, 1], sampler_method="mode", image_shape=(48, 48, 3))


MODELS = {
    "bert": text("BertBackbone", **B), "bert_free": text("BertBackbone", free=True, **B), "deberta": text("DebertaV3Backbone", bucket_size=8, max_sequence_length=24, **B),
    "albert": text("AlbertBackbone", embedding_dim=16, num_groups=1, num_inner_repetitions=1, **B), "roberta": text("RobertaBackbone", **B), "t5": text("T5Backbone", **B), "gpt2": text("GPT2Backbone", **B),
    "gpt2_free": text("GPT2Backbone", free=True, **B), "whisper": whisper, "gemma": text("GemmaBackbone", head_dim=16, **G), "gemma2": text("GemmaBackbone", head_dim=16, use_post_ffw_norm=True, use_post_attention_norm=True, attention_logit_soft_cap=50., final_logit_soft_cap=30., use_sliding_window_attention=True, sliding_window_size=8, **G),
    "llama": text("LlamaBackbone", **G), "llama3_free": text("Llama3Backbone", free=True, **G), "mistral": text("MistralBackbone", sliding_window=8, **G), "mixtral": text("MixtralBackbone", num_experts=4, **G), "falcon": text("FalconBackbone", vocabulary_size=V, num_attention_heads=4, **L),
    "bloom": text("BloomBackbone", **B), "opt": text("OPTBackbone", **B), "gptneox": text("GPTNeoXBackbone", **B), "phi3": text("Phi3Backbone", **G), "qwen": text("QwenBackbone", **G), "qwen3": text("Qwen3Backbone", head_dim=16, **G),
    "qwen_moe": text("QwenMoeBackbone", moe_intermediate_dim=32, shared_expert_intermediate_dim=32, num_experts=4, top_k=2, **G), "gpt_oss": text("GptOssBackbone", num_experts=4, sliding_window=8, **G), "roformer": text("RoformerV2Backbone", head_size=16, **B), "esm": text("ESM2Backbone", **B),
    "fnet": text("FNetBackbone", vocabulary_size=V, **L), "xlnet": text("XLNetBackbone", **B), "bart": text("BartBackbone", **B), "electra": text("ElectraBackbone", vocab_size=V, num_heads=4, embedding_dim=32, **L), "distilbert": text("DistilBertBackbone", **B),
    "rwkv7": text("RWKV7Backbone", hidden_size=64, head_size=16, num_layers=2, vocabulary_size=V, intermediate_dim=128, gate_lora=16, mv_lora=8, aaa_lora=8, decay_lora=8), "qwen3_moe": text("Qwen3MoeBackbone", moe_intermediate_dim=32, num_experts=4, top_k=2, head_dim=16, **G),
    "qwen35": text("Qwen3_5Backbone", head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16, **G), "smollm3": text("SmolLM3Backbone", vocabulary_size=V, num_attention_heads=4, num_key_value_heads=2, attention_bias=False, attention_dropout=0., rope_layer_enabled_list=[True, False], layer_types=["attention", "attention"], mlp_bias=False, layer_norm_epsilon=1e-5, max_position_embeddings=64, rope_theta=1e4, partial_rotary_factor=1., **L),
    "mit": mit, "segformer": lambda: M.SegFormerBackbone(image_encoder=mit(), projection_filters=32), "segformer_task": task(lambda: M.SegFormerBackbone(image_encoder=mit(), projection_filters=32), "SegFormerImageSegmenter", num_classes=5), "retinanet": lambda: M.RetinaNetBackbone(image_encoder=resnet(), min_level=3, max_level=6, use_p5=True) ,
    "deeplab": lambda: M.DeepLabV3Backbone(image_encoder=resnet(), low_level_feature_key="P2", spatial_pyramid_pooling_key="P4", dilation_rates=[6, 12, 18], upsampling_size=4, image_shape=(128, 128, 3)), "vitdet": vitdet, "sam": sam, "clip": clip, "siglip": siglip, "mobilenet": mobilenet,
    "densenet": lambda: M.DenseNetBackbone([2, 3, 2], image_shape=(96, 96, 3), growth_rate=16), "cspnet": csp, "cspnet_cs2": lambda: csp(stage_type="cs3", activation="silu"), "vgg": lambda: M.VGGBackbone([1, 1, 2], [16, 32, 64], image_shape=(64, 64, 3)), "xception": lambda: M.XceptionBackbone([[16, 32], [32, 32], [64, 64]], [False, True, False], image_shape=(96, 96, 3)),
    "resnet_v2": lambda: resnet(block_type="bottleneck_block", use_pre_activation=True), "resnet_vd": lambda: resnet(input_conv_filters=[8, 8, 16], input_conv_kernel_sizes=[3, 3, 3], block_type="bottleneck_block_vd"), "vit": lambda: M.ViTBackbone(image_shape=(64, 64, 3), patch_size=(16, 16), num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128),
    "deit": lambda: M.DeiTBackbone(image_shape=(64, 64, 3), patch_size=(16, 16), num_layers=2, num_heads=4, hidden_dim=64, intermediate_dim=128), "dinov2": dino2, "dinov3": lambda: M.DINOV3Backbone(patch_size=16, num_layers=2, hidden_dim=64, num_heads=4, intermediate_dim=128, use_gated_mlp=True, use_mask_token=False, image_shape=(64, 64, 3)),
    "depth_anything": depth_anything, "swin": lambda: M.SwinTransformerBackbone(image_shape=(112, 112, 3), embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=7), "hgnet": hgnet, "vae": vae, "parseq": parseq, "paligemma": paligemma, "moonshine": moonshine, "flux": flux, "videoprism": videoprism,
    "bert_masked": lambda: M.BertMaskedLM(backbone=M.BertBackbone(**B), preprocessor=None), "gpt2_causal": lambda: M.GPT2CausalLM(backbone=M.GPT2Backbone(**B), preprocessor=None),
}
