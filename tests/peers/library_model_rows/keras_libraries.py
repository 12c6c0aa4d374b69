"""keras.applications of both Kerases, keras-hub, keras-nlp, keras-cv: every family, as small as its constructor allows."""
import numpy as np

from library_model_rows.rows import stranger


def saved(model, path, inputs=None, **requests):
    """Exported as Keras 3 or saved as Keras 2 does it."""
    if hasattr(model, "export"):
        model.export(str(path))
    else:
        model.save(str(path), save_format="tf", include_optimizer=False)
    return list(requests.values()) or None


APPLICATIONS = {"Xception": 71, "VGG16": 32, "ResNet50": 32, "ResNet50V2": 32, "InceptionV3": 75, "InceptionResNetV2": 75, "MobileNet": 32, "MobileNetV2": 32, "MobileNetV3Large": 32, "DenseNet121": 32,
                "NASNetMobile": 32, "EfficientNetB0": 32, "EfficientNetV2S": 32, "ConvNeXtTiny": 32}
for family, size in APPLICATIONS.items():
    def keras3(path, family=family, size=size):
        import keras
        if keras.__version__ < "3":
            raise ImportError("Keras 3")
        model = getattr(keras.applications, family)(weights=None, input_shape=(size, size, 3), classes=5)
        return saved(model, path)
    stranger("keras>=3", "keras3_" + family)(keras3)

    def keras2(path, family=family, size=size):
        import tf_keras
        model = getattr(tf_keras.applications, family)(weights=None, input_shape=(size, size, 3), classes=5)
        model.save(str(path), save_format="tf", include_optimizer=False)
    stranger("tf_keras", "keras2_" + family)(keras2)
for family in ("RegNetX002", "RegNetY002", "ResNetRS50"):
    def recent(path, family=family):
        import tf_keras
        getattr(tf_keras.applications, family)(weights=None, input_shape=(32, 32, 3), classes=5).save(str(path), save_format="tf", include_optimizer=False)
    stranger("tf_keras", "keras2_" + family)(recent)


def text_inputs(length=12):
    ids = np.random.default_rng(0).integers(2, 60, (2, length)).astype(np.int32)
    return ids, np.concatenate([np.ones((2, length - 3)), np.array([[1, 1, 0], [0, 0, 0]])], 1).astype(np.int32)


def hub(name, make, inputs):
    @stranger("keras-hub", "keras_hub_" + name)
    def build(path):
        import keras
        import keras_hub
        model = make(keras_hub, keras)
        ids, mask = text_inputs()
        given = dict(token_ids=ids, padding_mask=mask, segment_ids=mask * 0, images=np.random.default_rng(0).normal(0, 1, (2, 32, 32, 3)).astype(np.float32),
                     encoder_token_ids=ids, encoder_padding_mask=mask, decoder_token_ids=ids, decoder_padding_mask=mask)
        model.export(str(path), verbose=False)
        return [{k: given[k] for k in inputs}] if len(inputs) > 1 else None  # one input goes by another name


SMALL = dict(vocabulary_size=64, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
PADDED, SEGMENTED = ("token_ids", "padding_mask"), ("token_ids", "segment_ids", "padding_mask")
PAIR = ("encoder_token_ids", "encoder_padding_mask", "decoder_token_ids", "decoder_padding_mask")
hub("bert", lambda h, k: h.models.BertBackbone(max_sequence_length=16, **SMALL), SEGMENTED)
hub("albert", lambda h, k: h.models.AlbertBackbone(embedding_dim=8, max_sequence_length=16, **SMALL), SEGMENTED)
hub("deberta_v3", lambda h, k: h.models.DebertaV3Backbone(max_sequence_length=16, bucket_size=4, **SMALL), PADDED)
hub("distil_bert", lambda h, k: h.models.DistilBertBackbone(max_sequence_length=16, **SMALL), PADDED)
hub("roberta", lambda h, k: h.models.RobertaBackbone(max_sequence_length=16, **SMALL), PADDED)
hub("f_net", lambda h, k: h.models.FNetBackbone(max_sequence_length=16, **{n: v for n, v in SMALL.items() if n != "num_heads"}), ("token_ids", "segment_ids"))
hub("xlnet", lambda h, k: h.models.XLNetBackbone(**SMALL), SEGMENTED)
hub("gpt2", lambda h, k: h.models.GPT2Backbone(max_sequence_length=16, **SMALL), PADDED)
hub("gpt_neo_x", lambda h, k: h.models.GPTNeoXBackbone(max_sequence_length=16, rotary_percentage=0.5, **SMALL), PADDED)
hub("opt", lambda h, k: h.models.OPTBackbone(max_sequence_length=16, **SMALL), PADDED)
hub("bloom", lambda h, k: h.models.BloomBackbone(max_sequence_length=16, **SMALL), PADDED)
DECODER = dict(vocabulary_size=64, num_layers=2, num_query_heads=2, num_key_value_heads=1, hidden_dim=8, intermediate_dim=16)
hub("llama", lambda h, k: h.models.LlamaBackbone(**DECODER), PADDED)
hub("mistral", lambda h, k: h.models.MistralBackbone(sliding_window=4, **DECODER), PADDED)
hub("gemma", lambda h, k: h.models.GemmaBackbone(head_dim=4, **DECODER), PADDED)
hub("gemma2", lambda h, k: h.models.GemmaBackbone(head_dim=4, attention_logit_soft_cap=50, final_logit_soft_cap=30, use_sliding_window_attention=True, sliding_window_size=4, use_post_ffw_norm=True,
                                                  use_post_attention_norm=True, **DECODER), PADDED)
hub("phi3", lambda h, k: h.models.Phi3Backbone(**DECODER), PADDED)
hub("bart", lambda h, k: h.models.BartBackbone(max_sequence_length=16, **SMALL), PAIR)
hub("t5", lambda h, k: h.models.T5Backbone(**SMALL), PAIR)
hub("vit", lambda h, k: h.models.ViTBackbone(image_shape=(32, 32, 3), patch_size=8, num_layers=2, num_heads=2, hidden_dim=8, mlp_dim=16), ("images",))
hub("segformer", lambda h, k: h.models.MiTBackbone(layerwise_depths=[1, 1], num_layers=2, layerwise_num_heads=[1, 2], layerwise_sr_ratios=[8, 4], max_drop_path_rate=0.1, hidden_dims=[8, 16], layerwise_patch_sizes=[7, 3], layerwise_strides=[4, 2],
                                                   image_shape=(32, 32, 3)), ("images",))
hub("resnet_vd", lambda h, k: h.models.ResNetBackbone(input_conv_filters=[8, 8, 16], input_conv_kernel_sizes=[3, 3, 3], stackwise_num_filters=[64, 16], stackwise_num_blocks=[1, 1], stackwise_num_strides=[1, 2],
                                                      block_type="bottleneck_block_vd", image_shape=(32, 32, 3)), ("images",))


@stranger("keras-hub tensorflow-text", "keras_hub_generate")
def generate(path):
    import keras_hub
    import tensorflow as tf
    ids, mask = text_inputs(8)
    model = keras_hub.models.GPT2CausalLM(backbone=keras_hub.models.GPT2Backbone(max_sequence_length=16, **SMALL))
    model.compile(sampler="greedy")

    @tf.function(input_signature=[tf.TensorSpec([2, 12], tf.int32, name="token_ids"), tf.TensorSpec([2, 12], tf.int32, name="padding_mask")])
    def serve(token_ids, padding_mask):
        return model.generate_step({"token_ids": token_ids, "padding_mask": tf.cast(padding_mask, tf.bool)}, stop_token_ids=None)
    module = tf.Module()
    module.variables_ = [v.value for v in model.variables]
    tf.saved_model.save(module, str(path), signatures={"serving_default": serve})
    return [{"token_ids": np.pad(ids, [[0, 0], [0, 4]]), "padding_mask": np.pad(mask, [[0, 0], [0, 4]])}]


def vision(name, make, size=64):
    @stranger("keras-cv tensorflow<2.16", "keras_cv_" + name)
    def build(path):
        import keras_cv
        import tensorflow as tf
        model = make(keras_cv)
        model(tf.zeros([1, size, size, 3]))
        serve = tf.function(lambda images: model(images, training=False), input_signature=[tf.TensorSpec([None, size, size, 3], tf.float32, name="images")])
        tf.saved_model.save(model, str(path), signatures={"serving_default": serve})


vision("yolo_v8", lambda c: c.models.YOLOV8Detector(num_classes=3, bounding_box_format="xyxy", backbone=c.models.YOLOV8Backbone(include_rescaling=True, stackwise_channels=[8, 16, 16, 16], stackwise_depth=[1, 1, 1, 1]), fpn_depth=1))
vision("retina_net", lambda c: c.models.RetinaNet(num_classes=3, bounding_box_format="xyxy", backbone=c.models.ResNetBackbone(
    stackwise_filters=[8, 8, 16, 16], stackwise_blocks=[1, 1, 1, 1], stackwise_strides=[1, 2, 2, 2], include_rescaling=True)))
vision("deeplab", lambda c: c.models.DeepLabV3Plus(num_classes=3, backbone=c.models.ResNetBackbone(stackwise_filters=[8, 8, 16, 16], stackwise_blocks=[1, 1, 1, 1], stackwise_strides=[1, 2, 2, 2], include_rescaling=True, input_shape=(64, 64, 3))))
