"""Hugging Face transformers 4.x on TensorFlow, small and random, saved by save_pretrained(saved_model=True) as their users do."""
import shutil

import numpy as np

from library_model_rows.rows import stranger

TEXT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64)
DECODER = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37,
               decoder_ffn_dim=37, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
VISION = dict(image_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, num_channels=3)


def fill(name, dtype, dims, batch, length, config):
    """A value that the model takes for the input `name`."""
    rng = np.random.default_rng(batch)
    image = getattr(config, "image_size", None) or 64
    image = image if isinstance(image, int) else image[0]
    if name == "pixel_values":
        return rng.normal(0, 1, [d if d > 0 else s for d, s in zip(dims, (batch, 3, image, image))]).astype(np.float32)
    if name == "input_features":  # whisper: bands first
        whisper = hasattr(config, "num_mel_bins")
        return rng.normal(0, 1, (batch, config.num_mel_bins, 2 * config.max_source_positions) if whisper else (batch, length, config.input_feat_per_channel)).astype(np.float32)
    if name == "bbox":
        return np.sort(rng.integers(0, 60, (batch, length, 4)), -1).astype(dtype.as_numpy_dtype)
    shape = [d if d > 0 else (batch if i == 0 else length) for i, d in enumerate(dims)]
    if "mask" in name:
        mask = np.ones(shape)
        mask[-1, -3:] = 0 if batch > 1 else 1
        return mask.astype(dtype.as_numpy_dtype)
    if dtype.is_integer:
        high = 2 if "type" in name or "langs" in name else 90
        return rng.integers(0 if high == 2 else 3, high, shape).astype(dtype.as_numpy_dtype)
    return rng.normal(0, 1, shape).astype(np.float32)


def save(model, path, length=16, whole=False):
    import tensorflow as tf
    if whole:
        model.save_pretrained(str(path) + ".hf", saved_model=True)
        shutil.move(str(path) + ".hf/saved_model/1", path)
        shutil.rmtree(str(path) + ".hf")
    else:  # the same signature without the functions of each layer
        module = tf.Module()
        module.variables_ = model.variables
        serve = tf.function(lambda inputs: {k: v for k, v in model.serving(inputs).items() if not hasattr(v, "to_tuple")})  # the towers' own results are no tensors
        tf.saved_model.save(module, str(path), signatures={"serving_default": serve.get_concrete_function(model.input_signature)})
    return filled(path, model.config, length)


def filled(path, config, length):
    import tensorflow as tf
    from tensorflow.python.saved_model import loader_impl
    signatures = loader_impl.parse_saved_model(str(path)).meta_graphs[0].signature_def
    inputs = {k: (tf.as_dtype(v.dtype), [d.size for d in v.tensor_shape.dim]) for k, v in signatures["serving_default"].inputs.items()}
    return [{k: fill(k, dtype, dims, batch, length, config) for k, (dtype, dims) in inputs.items()} for batch in (1, 2)]


def transformer(name, model, config, length=16, whole=False, **settings):
    @stranger("transformers<4.50 tf_keras", "hf_" + name)
    def build(path):
        import transformers
        made = getattr(transformers, "TF" + model)(getattr(transformers, config)(**settings))
        made(made.dummy_inputs)
        return save(made, path, length, whole)


transformer("bert", "BertForSequenceClassification", "BertConfig", **TEXT)
transformer("bert_qa", "BertForQuestionAnswering", "BertConfig", **TEXT)
transformer("bert_tokens", "BertForTokenClassification", "BertConfig", **TEXT)
transformer("bert_pretraining", "BertForPreTraining", "BertConfig", **TEXT)
transformer("bert_choice", "BertForMultipleChoice", "BertConfig", **TEXT)
transformer("bert_hidden", "BertModel", "BertConfig", output_hidden_states=True, output_attentions=True, **TEXT)
transformer("albert", "AlbertForMaskedLM", "AlbertConfig", embedding_size=16, **TEXT)
transformer("roberta", "RobertaForSequenceClassification", "RobertaConfig", **{**TEXT, "max_position_embeddings": 80})
transformer("roberta_prenorm", "RobertaPreLayerNormModel", "RobertaPreLayerNormConfig", **{**TEXT, "max_position_embeddings": 80})
transformer("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig", vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=37, max_position_embeddings=64)
transformer("electra", "ElectraForPreTraining", "ElectraConfig", embedding_size=16, **TEXT)
transformer("deberta", "DebertaModel", "DebertaConfig", relative_attention=True, pos_att_type=["p2c", "c2p"], **TEXT)
transformer("deberta_v2", "DebertaV2ForSequenceClassification", "DebertaV2Config", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8, norm_rel_ebd="layer_norm",
            share_att_key=True, conv_kernel_size=3, **TEXT)
transformer("mpnet", "MPNetModel", "MPNetConfig", **{**TEXT, "max_position_embeddings": 80})
transformer("mobilebert", "MobileBertForSequenceClassification", "MobileBertConfig", embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32, num_feedforward_networks=2, **TEXT)
transformer("convbert", "ConvBertModel", "ConvBertConfig", embedding_size=32, head_ratio=2, conv_kernel_size=3, num_groups=1, **TEXT)
transformer("funnel", "FunnelModel", "FunnelConfig", vocab_size=99, block_sizes=[1, 1], num_decoder_layers=1, d_model=32, n_head=4, d_head=8, d_inner=37)
transformer("longformer", "LongformerModel", "LongformerConfig", attention_window=4, **TEXT)
transformer("led", "LEDModel", "LEDConfig", use_cache=False, vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37,
            decoder_ffn_dim=37, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64, attention_window=4)
transformer("xlnet", "XLNetModel", "XLNetConfig", vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=37)
transformer("xlm", "XLMModel", "XLMConfig", vocab_size=99, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=64)
transformer("flaubert", "FlaubertModel", "FlaubertConfig", vocab_size=99, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=64)
transformer("layoutlm", "LayoutLMModel", "LayoutLMConfig", max_2d_position_embeddings=64, **TEXT)
transformer("layoutlmv3", "LayoutLMv3Model", "LayoutLMv3Config", max_2d_position_embeddings=64, coordinate_size=6, shape_size=4, input_size=32, patch_size=16, **TEXT)
transformer("rembert", "RemBertModel", "RemBertConfig", input_embedding_size=16, output_embedding_size=24, **TEXT)
transformer("roformer", "RoFormerForMaskedLM", "RoFormerConfig", embedding_size=16, **TEXT)
transformer("esm", "EsmForMaskedLM", "EsmConfig", position_embedding_type="rotary", pad_token_id=1, mask_token_id=4, **TEXT)
transformer("lxmert", "LxmertModel", "LxmertConfig", vocab_size=99, hidden_size=32, num_attention_heads=4, intermediate_size=37, l_layers=1, x_layers=1, r_layers=1, visual_feat_dim=20)
transformer("gpt2", "GPT2LMHeadModel", "GPT2Config", whole=True, vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
transformer("openai_gpt", "OpenAIGPTLMHeadModel", "OpenAIGPTConfig", vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
transformer("gptj", "GPTJForCausalLM", "GPTJConfig", vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4)
transformer("ctrl", "CTRLModel", "CTRLConfig", vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, dff=37)
transformer("opt", "OPTForCausalLM", "OPTConfig", vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=37, max_position_embeddings=64, word_embed_proj_dim=32)
transformer("mistral", "MistralForCausalLM", "MistralConfig", num_key_value_heads=2, **TEXT)
transformer("xglm", "XGLMForCausalLM", "XGLMConfig", vocab_size=99, d_model=32, num_layers=2, attention_heads=4, ffn_dim=37, max_position_embeddings=64)
transformer("t5", "T5ForConditionalGeneration", "T5Config", vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
transformer("t5_encoder", "T5EncoderModel", "T5Config", vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, feed_forward_proj="gated-gelu")
transformer("bart", "BartForConditionalGeneration", "BartConfig", **DECODER)
transformer("mbart", "MBartForConditionalGeneration", "MBartConfig", **DECODER)
transformer("marian", "MarianMTModel", "MarianConfig", **DECODER)
transformer("pegasus", "PegasusForConditionalGeneration", "PegasusConfig", **DECODER)
transformer("blenderbot", "BlenderbotForConditionalGeneration", "BlenderbotConfig", **DECODER)
transformer("whisper", "WhisperModel", "WhisperConfig", length=30, max_source_positions=30, max_target_positions=40, num_mel_bins=16, **{k: v for k, v in DECODER.items() if k != "max_position_embeddings"})
transformer("speech2text", "Speech2TextModel", "Speech2TextConfig", max_source_positions=60, max_target_positions=40, input_feat_per_channel=16, num_conv_layers=2,
            conv_channels=24, conv_kernel_sizes=(3, 3), input_channels=1, **{k: v for k, v in DECODER.items() if k != "max_position_embeddings"})
AUDIO = dict(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, conv_dim=(16, 16, 16), conv_stride=(4, 4, 2), conv_kernel=(8, 8, 4),
             num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2)
transformer("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", length=1024, **AUDIO)
transformer("wav2vec2_stable", "Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", length=1024, do_stable_layer_norm=True, feat_extract_norm="layer", **AUDIO)
transformer("hubert", "HubertForCTC", "HubertConfig", length=1024, **AUDIO)
transformer("vit", "ViTForImageClassification", "ViTConfig", patch_size=8, **VISION)
transformer("deit", "DeiTForImageClassification", "DeiTConfig", patch_size=8, **VISION)
transformer("vit_mae", "ViTMAEModel", "ViTMAEConfig", patch_size=8, **VISION)
transformer("data2vec_vision", "Data2VecVisionForImageClassification", "Data2VecVisionConfig", patch_size=8, use_relative_position_bias=True, **VISION)
transformer("swin", "SwinForImageClassification", "SwinConfig", image_size=32, patch_size=2, embed_dim=16, depths=[1, 2], num_heads=[2, 4], window_size=4)
transformer("convnext", "ConvNextForImageClassification", "ConvNextConfig", image_size=32, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1])
transformer("convnext_v2", "ConvNextV2ForImageClassification", "ConvNextV2Config", image_size=32, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1])
transformer("regnet", "RegNetForImageClassification", "RegNetConfig", embedding_size=8, hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 2, 1], groups_width=8)
transformer("resnet", "ResNetForImageClassification", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 2, 1])
transformer("cvt", "CvtForImageClassification", "CvtConfig", embed_dim=[16, 32, 48], num_heads=[1, 2, 3], depth=[1, 2, 3], image_size=64)
transformer("efficientformer", "EfficientFormerForImageClassification", "EfficientFormerConfig", depths=[1, 1, 1, 2], hidden_sizes=[8, 16, 24, 32], dim=32, image_size=224)
transformer("mobilevit", "MobileViTForImageClassification", "MobileViTConfig", image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 24, 24, 32, 40], num_attention_heads=4)
transformer("mobilevit_segment", "MobileViTForSemanticSegmentation", "MobileViTConfig", image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 24, 24, 32, 40])
transformer("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", image_size=64, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16)
transformer("swiftformer", "SwiftFormerForImageClassification", "SwiftFormerConfig", image_size=224, embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1])
transformer("clip", "CLIPModel", "CLIPConfig", text_config=TEXT, vision_config=dict(patch_size=8, **VISION), projection_dim=16)
transformer("groupvit", "GroupViTModel", "GroupViTConfig", text_config=TEXT, vision_config=dict(image_size=32, patch_size=8, hidden_size=32, depths=[1, 1, 1], num_hidden_layers=3,
            num_group_tokens=[0, 8, 4], num_output_groups=[0, 8, 4], num_attention_heads=4, intermediate_size=37))
transformer("blip", "BlipModel", "BlipConfig", text_config=dict(encoder_hidden_size=32, **TEXT), vision_config=dict(patch_size=8, **VISION))
transformer("sam", "SamModel", "SamConfig", vision_config=dict(hidden_size=32, output_channels=32, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, window_size=4,
            global_attn_indexes=[1], mlp_dim=37, num_pos_feats=16), prompt_encoder_config=dict(hidden_size=32, image_size=64, patch_size=8, mask_input_channels=4),
            mask_decoder_config=dict(hidden_size=32, mlp_dim=20, num_attention_heads=2, iou_head_hidden_dim=16, num_hidden_layers=2))


def generating(name, model, config, settings, length=8, batch=None, **arguments):
    """generate() as a signature: beams, sampling, caches in a While loop. Some searches want to know the batch size."""
    @stranger("transformers<4.50 tf_keras", "hf_generate_" + name)
    def build(path):
        import tensorflow as tf
        import transformers
        made = getattr(transformers, "TF" + model)(getattr(transformers, config)(**settings))
        made(made.dummy_inputs)

        @tf.function(input_signature=[tf.TensorSpec([batch, length], tf.int32, name="input_ids"), tf.TensorSpec([batch, length], tf.int32, name="attention_mask")])
        def serve(input_ids, attention_mask):
            return {"sequences": made.generate(input_ids=input_ids, attention_mask=attention_mask, **arguments)}
        tf.saved_model.save(made, str(path), signatures={"serving_default": serve})
        return filled(path, made.config, length)


GPT2 = dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, pad_token_id=0, eos_token_id=98)
T5 = dict(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, decoder_start_token_id=0)
generating("greedy", "GPT2LMHeadModel", "GPT2Config", GPT2, max_new_tokens=6)
generating("beams", "GPT2LMHeadModel", "GPT2Config", GPT2, max_new_tokens=6, batch=2, num_beams=3)
generating("sample", "GPT2LMHeadModel", "GPT2Config", GPT2, max_new_tokens=6, batch=2, do_sample=True, top_k=20, top_p=0.9, temperature=0.7, seed=[3, 4])
generating("contrastive", "GPT2LMHeadModel", "GPT2Config", GPT2, max_new_tokens=6, batch=2, penalty_alpha=0.6, top_k=4)
generating("t5", "T5ForConditionalGeneration", "T5Config", T5, max_new_tokens=6)
generating("t5_beams", "T5ForConditionalGeneration", "T5Config", T5, max_new_tokens=6, batch=2, num_beams=2)
generating("bart", "BartForConditionalGeneration", "BartConfig", DECODER, max_new_tokens=6, repetition_penalty=1.3)


@stranger("transformers<4.50 tf_keras", "hf_bert_mixed_float16")
def half(path):
    import tensorflow as tf
    import tf_keras
    import transformers
    tf_keras.mixed_precision.set_global_policy("mixed_float16")
    made = transformers.TFBertModel(transformers.BertConfig(**TEXT))
    made(made.dummy_inputs)
    return save(made, path)


@stranger("transformers<4.50 tf_keras", "hf_vision_encoder_decoder")
def vision_encoder_decoder(path):
    import transformers
    made = transformers.TFVisionEncoderDecoderModel(encoder=transformers.TFViTModel(transformers.ViTConfig(patch_size=8, **VISION)),
                                                    decoder=transformers.TFGPT2LMHeadModel(transformers.GPT2Config(add_cross_attention=True, **GPT2)))
    made(made.dummy_inputs)
    return save(made, path)
