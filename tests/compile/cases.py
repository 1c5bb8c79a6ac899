#!/usr/bin/env python3
"""Writes cases for compile.py.

usage: cases.py options OUT.json            one setting at a time on small dense and routed models
       cases.py families OUT.json           every decoder family, two remat policies
       cases.py recipes OUT.json E2E.json   published runs
       cases.py plans OUT.json --seed N --jobs N [--ranks N] [--quantization NAME]
                                            what `advise` ranks first for drawn jobs
       cases.py configurations OUT.json --seed N --jobs N [--chips NAME,NAME...]
                                            what nobody advised: drawn meshes, policies, tiles and batches

Plans come from the program named by ADVISOR (build/tpu-advisor otherwise). A case is {id, request}.
"""
import argparse
import json
import os
import random
import subprocess
import zlib

DENSE = {"base_emb_dim": 2048, "base_num_query_heads": 16, "base_num_kv_heads": 8, "base_mlp_dim": 8192,
         "base_num_decoder_layers": 8, "head_dim": 128, "vocab_size": 32768}
ROUTED = {"decoder_block": "mixtral", "base_emb_dim": 2048, "base_num_query_heads": 16, "base_num_kv_heads": 8,
          "base_mlp_dim": 4096, "base_num_decoder_layers": 8, "head_dim": 128, "vocab_size": 32768,
          "base_moe_mlp_dim": 4096, "num_experts": 8, "num_experts_per_tok": 2}
SPLASH = {"attention": "flash", "sa_block_q": 512, "sa_block_kv": 512, "sa_block_kv_compute": 512, "sa_block_q_dkv": 512,
          "sa_block_kv_dkv": 512, "sa_block_kv_dkv_compute": 512, "sa_use_fused_bwd_kernel": True,
          "use_tokamax_splash": True}
BASE = {"per_device_batch_size": 2, "max_target_length": 4096, "remat_policy": "full", "dtype": "bfloat16", **SPLASH}
POLICIES = ("full", "minimal", "minimal_with_context", "save_dot_with_context_except_mlp", "save_dot_except_mlpwi",
            "save_dot_except_mlp", "save_qkv_proj", "save_out_proj", "qkv_proj_offloaded", "minimal_offloaded", "none")
TENSORS = ("decoder_layer_input", "context", "mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo", "query_proj", "key_proj",
           "value_proj", "out_proj")
ROUTED_TENSORS = ("moe_mlpwi_0", "moe_mlpwi_1", "moe_mlpwo")
SLICE = {"tpu7x": "2x2x1", "v6e": "2x4", "v5p": "2x2x2", "v5e": "2x4", "v4": "2x2x2"}


def case(name, chip, model, config, flags=(), topology=None, slices=1):
    cluster = {"chip": chip, "topology": topology or SLICE[chip]}
    if slices > 1:
        cluster["slices"] = slices
    return {"id": name, "request": {"model": model, "cluster": cluster, "config": config, "xla_flags": list(flags)}}


def fsdp(**more):
    return {**BASE, "ici_fsdp_parallelism": -1, **more}


def mesh(**axes):
    return {**BASE, **{f"ici_{name}_parallelism": size for name, size in axes.items()}}


def dense_options():
    yield case("dense-tpu7x-full", "tpu7x", DENSE, fsdp())
    for policy in POLICIES[1:]:
        yield case(f"dense-tpu7x-{policy}", "tpu7x", DENSE, fsdp(remat_policy=policy))
    for tensor in TENSORS:
        for place in ("device", "offload"):
            if (tensor, place) != ("decoder_layer_input", "device"):
                yield case(f"dense-tpu7x-{tensor}-{place}", "tpu7x", DENSE, fsdp(remat_policy="custom", **{tensor: place}))
    for name, more in {
            "b1": {"per_device_batch_size": 1}, "b4": {"per_device_batch_size": 4}, "b8": {"per_device_batch_size": 8},
            "s1k-b8": {"max_target_length": 1024, "per_device_batch_size": 8},
            "s16k-b1": {"max_target_length": 16384, "per_device_batch_size": 1},
            "s64k-b1": {"max_target_length": 65536, "per_device_batch_size": 1},
            "vocab-tiling4": {"num_vocab_tiling": 4}, "vocab-tiling8-b4": {"num_vocab_tiling": 8, "per_device_batch_size": 4},
            "accumulate4": {"gradient_accumulation_steps": 4}, "accumulate2-b4": {"gradient_accumulation_steps": 2, "per_device_batch_size": 4},
            "weights-bf16": {"weight_dtype": "bfloat16"}, "mu-bf16": {"mu_dtype": "bfloat16"},
            "grad-bf16": {"grad_dtype": "bfloat16"}, "adam-pax": {"opt_type": "adam_pax"}, "sgd": {"opt_type": "sgd"}, "muon": {"opt_type": "muon"},
            "optimizer-offload": {"optimizer_memory_host_offload": True}, "parameter-offload": {"parameter_memory_host_offload": True},
            "no-scan": {"scan_layers": False}, "no-iota": {"use_iota_embed": False}, "iota": {"use_iota_embed": True},
            "dot-product": {"attention": "dot_product"}, "jax-splash": {"use_tokamax_splash": False},
            "unfused": {"sa_use_fused_bwd_kernel": False}, "fp8": {"quantization": "fp8_full", "use_qwix_quantization": True},
            "int8": {"quantization": "int8"}, "f32-logits": {"cast_logits_to_fp32": True, "logits_dot_in_fp32": True},
            "cast-f32": {"cast_logits_to_fp32": True}, "no-clip": {"gradient_clipping_threshold": 0.0},
            "tied": None, "float32": {"dtype": "float32"}}.items():
        if more is None:
            yield case(f"dense-tpu7x-{name}", "tpu7x", {**DENSE, "logits_via_embedding": True}, fsdp())
        else:
            yield case(f"dense-tpu7x-{name}", "tpu7x", DENSE, fsdp(**more))
    for name, axes in {
            "tp8": {"tensor": 8}, "tp2-fsdp4": {"tensor": 2, "fsdp": 4}, "tp4-fsdp2": {"tensor": 4, "fsdp": 2},
            "tsp2-fsdp4": {"tensor_sequence": 2, "fsdp": 4}, "cp2-fsdp4": {"context": 2, "fsdp": 4},
            "cp4-fsdp2": {"context": 4, "fsdp": 2}, "cp8": {"context": 8}, "data8": {"data": 8}, "data2-fsdp4": {"data": 2, "fsdp": 4},
            "fsdp-transpose2": {"fsdp": 4, "fsdp_transpose": 2}, "sequence2": {"sequence": 2, "fsdp": 4}}.items():
        yield case(f"dense-tpu7x-{name}", "tpu7x", DENSE, mesh(**axes))
        if name in ("tp4-fsdp2", "cp2-fsdp4"):
            yield case(f"dense-tpu7x-{name}-minimal", "tpu7x", DENSE, {**mesh(**axes), "remat_policy": "minimal"})
    yield case("dense-tpu7x-pp2", "tpu7x", DENSE, {**mesh(pipeline=2, fsdp=4), "num_pipeline_microbatches": 4, "per_device_batch_size": 4})
    yield case("dense-tpu7x-pp4", "tpu7x", DENSE, {**mesh(pipeline=4, fsdp=2), "num_pipeline_microbatches": 4, "per_device_batch_size": 4, "num_layers_per_pipeline_stage": 2})
    yield case("dense-tpu7x-one-chip", "tpu7x", DENSE, mesh(fsdp=2), topology="1x1x1")
    yield case("dense-tpu7x-slices2", "tpu7x", DENSE, {**mesh(fsdp=8), "dcn_data_parallelism": 2}, slices=2)
    for chip in ("v6e", "v5p", "v5e", "v4"):
        for policy in ("full", "minimal", "minimal_offloaded"):
            yield case(f"dense-{chip}-{policy}", chip, DENSE, fsdp(remat_policy=policy))
        yield case(f"dense-{chip}-b8", chip, DENSE, fsdp(per_device_batch_size=8, num_vocab_tiling=1))
        yield case(f"dense-{chip}-tp4", chip, DENSE, mesh(tensor=4, fsdp=2))
    for vocab in (8192, 131072, 262144):
        yield case(f"dense-tpu7x-vocab{vocab // 1024}k", "tpu7x", {**DENSE, "vocab_size": vocab}, fsdp())
    for emb, heads, mlp in ((1024, 8, 4096), (4096, 32, 14336), (8192, 64, 28672)):
        model = {**DENSE, "base_emb_dim": emb, "base_num_query_heads": heads, "base_mlp_dim": mlp, "base_num_decoder_layers": 4}
        yield case(f"dense-tpu7x-emb{emb}", "tpu7x", model, fsdp())
        yield case(f"dense-tpu7x-emb{emb}-b4-minimal", "tpu7x", model, fsdp(per_device_batch_size=4, remat_policy="minimal"))
    for layers in (2, 32):
        yield case(f"dense-tpu7x-layers{layers}", "tpu7x", {**DENSE, "base_num_decoder_layers": layers}, fsdp())
    yield case("dense-tpu7x-gelu", "tpu7x", {**DENSE, "mlp_activations": ["gelu"]}, fsdp())
    yield case("dense-tpu7x-head64", "tpu7x", {**DENSE, "head_dim": 64, "base_num_query_heads": 32}, fsdp())
    yield case("dense-tpu7x-head256", "tpu7x", {**DENSE, "head_dim": 256, "base_num_query_heads": 8}, fsdp())
    yield case("dense-tpu7x-mha", "tpu7x", {**DENSE, "base_num_kv_heads": 16}, fsdp())
    yield case("dense-tpu7x-kv1", "tpu7x", {**DENSE, "base_num_kv_heads": 1}, fsdp())


def routed_options():
    grouped = {"sparse_matmul": True, "megablox": True}
    dropless = fsdp(**grouped)
    yield case("routed-tpu7x-full", "tpu7x", ROUTED, dropless)
    for policy in ("minimal", "save_qkv_proj", "minimal_offloaded"):
        yield case(f"routed-tpu7x-{policy}", "tpu7x", ROUTED, {**dropless, "remat_policy": policy})
    for tensor in ROUTED_TENSORS:
        for place in ("device", "offload"):
            yield case(f"routed-tpu7x-{tensor}-{place}", "tpu7x", ROUTED, {**dropless, "remat_policy": "custom", tensor: place})
    for name, more in {
            "tokamax": {"use_tokamax_gmm": True}, "ragged-dot": {"megablox": False},
            "b4": {"per_device_batch_size": 4}, "ragged-sort": {"use_tokamax_gmm": True, "use_ragged_sort": True},
            "custom-sort": {"use_custom_sort_vjp": True}, "fp8": {"quantization": "fp8_full", "use_qwix_quantization": True, "use_tokamax_gmm": True},
            "int8": {"quantization": "int8"}, "bf16-weights": {"weight_dtype": "bfloat16"},
            "f32-weight-sum": {"float32_weight_sum": True}, "bf16-weight-sum": {"float32_weight_sum": False}}.items():
        yield case(f"routed-tpu7x-{name}", "tpu7x", ROUTED, {**dropless, **more})
    for name, config in {
            "ep2": mesh(expert=2, fsdp=4), "ep4": mesh(expert=4, fsdp=2), "ep8": mesh(expert=8),
            "tp2": mesh(tensor=2, fsdp=4), "cp2": mesh(context=2, fsdp=4)}.items():
        yield case(f"routed-tpu7x-{name}", "tpu7x", ROUTED, {**config, **grouped})
        if name.startswith("ep"):
            yield case(f"routed-tpu7x-{name}-ring", "tpu7x", ROUTED, {**config, **grouped, "use_ring_of_experts": True})
    yield case("routed-tpu7x-dense-matmul", "tpu7x", ROUTED, fsdp(sparse_matmul=False, megablox=False))
    for factor in (1.0, 1.25, 2.0):
        yield case(f"routed-tpu7x-capacity{factor}", "tpu7x", ROUTED, fsdp(sparse_matmul=False, megablox=False, capacity_factor=factor))
    yield case("routed-tpu7x-capacity1.25-ep4", "tpu7x", ROUTED, {**mesh(expert=4, fsdp=2), "sparse_matmul": False, "megablox": False, "capacity_factor": 1.25})
    yield case("routed-tpu7x-capacity1.25-minimal", "tpu7x", ROUTED, fsdp(sparse_matmul=False, megablox=False, capacity_factor=1.25, remat_policy="minimal"))
    for experts, chosen in ((64, 8), (128, 8), (32, 4)):
        model = {**ROUTED, "num_experts": experts, "num_experts_per_tok": chosen, "base_mlp_dim": 1024, "base_moe_mlp_dim": 1024}
        yield case(f"routed-tpu7x-e{experts}k{chosen}", "tpu7x", model, dropless)
        yield case(f"routed-tpu7x-e{experts}k{chosen}-ep4", "tpu7x", model, {**mesh(expert=4, fsdp=2), **grouped})
    for chip in ("v6e", "v5p", "v5e", "v4"):
        yield case(f"routed-{chip}-full", chip, ROUTED, dropless)
        yield case(f"routed-{chip}-capacity1.25", chip, ROUTED, fsdp(sparse_matmul=False, megablox=False, capacity_factor=1.25))
        yield case(f"routed-{chip}-ep4", chip, ROUTED, {**mesh(expert=4, fsdp=2), **grouped})


QUANTIZATIONS = {"int8": {"quantization": "int8"}, "int8qwix": {"quantization": "int8", "use_qwix_quantization": True},
                 "fp8": {"quantization": "fp8"}, "fp8qwix": {"quantization": "fp8", "use_qwix_quantization": True},
                 "fp8full": {"quantization": "fp8_full", "use_qwix_quantization": True},
                 "fp8fixed": {"quantization": "fp8_full", "use_qwix_quantization": True,
                              "weight_quantization_calibration_method": "fixed,-224,224", "act_quantization_calibration_method": "fixed,-224,224"}}


def unscanned_options():
    deep = {**DENSE, "base_num_decoder_layers": 16}
    for chip in ("tpu7x", "v6e", "v5p", "v5e"):
        for policy in ("full", "minimal_with_context"):
            yield case(f"unscanned-{chip}-{policy}-8", chip, DENSE, fsdp(remat_policy=policy, scan_layers=False))
    yield case("unscanned-tpu7x-full-16", "tpu7x", deep, fsdp(scan_layers=False))
    for batch in (4, 6):
        yield case(f"unscanned-v6e-full-16-b{batch}", "v6e", deep, fsdp(scan_layers=False, per_device_batch_size=batch))
    yield case("unscanned-v6e-minimal-16-b4", "v6e", deep,
               fsdp(scan_layers=False, per_device_batch_size=4, remat_policy="minimal_with_context"))
    for name, more in {"custom": {"remat_policy": "custom", "context": "device", "mlpwo": "device"},
                       "offload": {"remat_policy": "custom", "context": "offload", "decoder_layer_input": "offload"},
                       "none": {"remat_policy": "none"}, "save_qkv": {"remat_policy": "save_qkv_proj"}}.items():
        yield case(f"unscanned-tpu7x-{name}-8", "tpu7x", DENSE, fsdp(scan_layers=False, **more))
    yield case("unscanned-tpu7x-moe-full", "tpu7x", ROUTED, fsdp(scan_layers=False))
    # more devices than windowed einsums go round
    for chip, topology in {"tpu7x": "4x4x4", "v6e": "8x8", "v5p": "4x4x4", "v5e": "8x8", "v4": "4x4x4"}.items():
        yield case(f"unscanned-{chip}-full-8-64chips", chip, DENSE, fsdp(scan_layers=False), topology=topology)
    yield case("unscanned-v4-full-8", "v4", DENSE, fsdp(scan_layers=False))
    wide = {**DENSE, "base_emb_dim": 4096, "base_num_query_heads": 32}
    for name, model, batch, topology in (("20", {**DENSE, "base_num_decoder_layers": 20}, 2, None),
                                         ("24", {**DENSE, "base_num_decoder_layers": 24}, 2, None),
                                         ("24-16devices", {**DENSE, "base_num_decoder_layers": 24}, 2, "2x2x2"),
                                         ("24-b1", {**DENSE, "base_num_decoder_layers": 24}, 1, None),
                                         ("wide-8", wide, 2, None), ("wide-4", {**wide, "base_num_decoder_layers": 4}, 2, None),
                                         ("narrow-8", {**DENSE, "base_emb_dim": 1024}, 2, None),
                                         ("tied-8", {**DENSE, "logits_via_embedding": True}, 2, None)):
        yield case(f"unscanned-tpu7x-full-{name}", "tpu7x", model, fsdp(scan_layers=False, per_device_batch_size=batch), topology=topology)
    for chip, topology, batch in (("tpu7x", "2x2x2", 2), ("v6e", "4x4", 1)):
        yield case(f"unscanned-{chip}-llama3.1-8b-full", chip, "llama3.1-8b",
                   {"model_name": "llama3.1-8b", **fsdp(scan_layers=False, num_vocab_tiling=8, per_device_batch_size=batch,
                                                        use_tokamax_splash=chip == "tpu7x")}, topology=topology)
    long = {name: value for name, value in fsdp(scan_layers=False, per_device_batch_size=8, max_target_length=24576,
                                                num_vocab_tiling=16).items() if name != "dtype"}
    yield case("unscanned-tpu7x-gemma4-e2b-196k-tokens", "tpu7x", "gemma4-e2b", {"model_name": "gemma4-e2b", **long}, topology="4x4x4")
    small = {"per_device_batch_size": 1, "use_tokamax_splash": False, "num_vocab_tiling": 8, "scan_layers": False}
    for chip, topology in {"tpu7x": "2x2x1", "v6e": "4x4", "v5p": "2x2x2", "v5e": "4x4", "v4": "2x2x2"}.items():
        for policy in ("full", "minimal_with_context"):
            yield case(f"unscanned-{chip}-gemma4-e2b-{policy}", chip, "gemma4-e2b",
                       {"model_name": "gemma4-e2b", **fsdp(**small, remat_policy=policy)}, topology=topology)


# attention of a published model's layer kinds, fewer layers and experts
LINEAR = {"override_model_config": True, "base_num_decoder_layers": 8, "num_experts": 8, "num_experts_per_tok": 2}
TO_HOST = {"remat_policy": "custom", **{name: "offload" for name in ("decoder_layer_input", "mlpwo", "key_proj", "value_proj", "out_proj")}}


def linear_options():
    def linear(name, chip, topology=None, **more):
        config = {"model_name": "qwen3.5-35b-a3b", **LINEAR, "remat_policy": "full", "max_target_length": 4096, "per_device_batch_size": 4,
                  "attention": "flash", "use_tokamax_splash": chip in ("tpu7x", "v6e"), "sa_use_fused_bwd_kernel": True,
                  **{f"sa_block_{of}": 512 for of in ("q", "kv", "q_dkv", "kv_dkv")}, "ici_fsdp_parallelism": -1, "num_vocab_tiling": 8}
        return case(f"linear-{chip}-{name}", chip, "qwen3.5-35b-a3b", {**config, **more}, topology=topology)

    for chip in SLICE:
        for batch in (2, 4):
            yield linear(f"full-b{batch}", chip, per_device_batch_size=batch)
    yield linear("full-s16k", "v6e", max_target_length=16384, per_device_batch_size=1)
    yield linear("custom-b4", "v6e", remat_policy="custom",
                 **{name: "device" for name in ("query_proj", "mlpwi_0", "moe_mlpwi_0", "moe_mlpwi_1")})
    yield linear("layers16", "v6e", base_num_decoder_layers=16)
    yield linear("16dev", "v6e", "4x4")
    yield linear("64dev", "v6e", "8x8")
    yield linear("heads", "tpu7x", gdn_num_value_heads=16)
    yield linear("chunk128", "tpu7x", gdn_chunk_size=128)
    yield linear("tp2", "v5p", ici_tensor_parallelism=2)


def nested_options():
    """Blocks that are unrolled, each with a scan of its own inside."""
    slices = {"v6e": "4x4", "v4": "2x2x4", "tpu7x": "2x2x2", "v5p": "2x2x4"}

    def nested(name, chip, layers, model="gemma4-31b", topology=None, **more):
        config = {"model_name": model, "override_model_config": True, "base_num_decoder_layers": layers, "remat_policy": "full",
                  "max_target_length": 4096, "per_device_batch_size": 2, "attention": "flash", "use_tokamax_splash": False,
                  "sa_use_fused_bwd_kernel": True, "ici_fsdp_parallelism": -1, "num_vocab_tiling": 8}
        return case(f"nested-{chip}-{name}-{layers}", chip, model, {**config, **more}, topology=topology or slices[chip])

    for chip in slices:
        for layers in (12, 24):
            yield nested("full", chip, layers)
        yield nested("custom", chip, 12, remat_policy="custom", context="device", mlpwi_0="device")
        yield nested("offload", chip, 24, **TO_HOST)
    yield nested("offload", "v6e", 12, **TO_HOST)
    yield nested("b4", "v6e", 12, per_device_batch_size=4)
    yield nested("26b", "v6e", 12, model="gemma4-26b")
    yield nested("128dev", "v6e", 24, topology="8x16")
    yield nested("outproj", "v6e", 24, remat_policy="custom", out_proj="offload")
    yield nested("accumulate", "v4", 24, **TO_HOST, per_device_batch_size=1, gradient_accumulation_steps=4)


def quantized_options():
    kept = {"context": "device", "query_proj": "device", "mlpwi_0": "device"}
    for chip, names in {"tpu7x": ("fp8full", "int8"), "v6e": ("int8qwix", "int8")}.items():
        for policy in ("full", "minimal_with_context", "custom"):
            for name in names:
                more = {"remat_policy": policy, **(kept if policy == "custom" else {})}
                yield case(f"quant-{chip}-{name}-{policy}", chip, DENSE, fsdp(**QUANTIZATIONS[name], **more))
    for chip, name in (("tpu7x", "fp8fixed"), ("tpu7x", "fp8"), ("tpu7x", "fp8qwix"), ("v5e", "int8qwix"), ("v5p", "int8qwix"), ("v5p", "int8")):
        yield case(f"quant-{chip}-{name}-full", chip, DENSE, fsdp(**QUANTIZATIONS[name]))
    for name in ("fp8fixed", "fp8full"):
        yield case(f"quant-tpu7x-{name}-b8", "tpu7x", DENSE, fsdp(**QUANTIZATIONS[name], per_device_batch_size=8))


# name of the model, chip, slice, batch per device, sequence
FAMILIES = (
    ("deepseek2-16b", "tpu7x", "2x2x2", 2, 4096), ("deepseek3-671b", "tpu7x", "4x8x8", 1, 4096), ("deepseek3-tiny", "tpu7x", "2x2x1", 2, 2048),
    ("deepseek3.2-671b", "tpu7x", "4x8x8", 1, 4096), ("kimi-k2-1t", "tpu7x", "8x8x8", 1, 4096),
    ("deepseek4-tiny", "tpu7x", "2x2x1", 2, 2048), ("gemma-2b", "v6e", "2x4", 2, 4096), ("gemma-7b", "v6e", "4x4", 1, 8192), ("gemma2-2b", "v6e", "2x4", 1, 4096),
    ("gemma2-9b", "v5p", "2x2x2", 2, 8192), ("gemma2-27b", "tpu7x", "2x2x2", 2, 8192), ("gemma3-4b", "v6e", "2x4", 1, 8192),
    ("gemma3-12b", "v5p", "2x2x4", 2, 8192), ("gemma3-27b", "tpu7x", "2x2x2", 2, 8192),
    ("gpt-oss-20b", "tpu7x", "2x2x1", 2, 8192), ("gpt-oss-120b", "tpu7x", "2x4x4", 2, 8192),
    ("gpt3-6b", "v4", "2x2x4", 2, 2048), ("gpt3-22b", "v5p", "2x4x4", 2, 2048), ("gpt3-175b", "v6e", "16x16", 1, 2048), ("llama2-7b", "v5e", "4x8", 1, 4096), ("llama2-13b", "v4", "2x2x4", 2, 4096),
    ("llama2-70b", "v5p", "4x4x4", 2, 4096), ("llama3.1-8b", "v6e", "4x4", 2, 8192), ("llama3.1-70b", "tpu7x", "4x4x4", 2, 8192), ("llama3.1-405b", "tpu7x", "4x8x8", 1, 8192),
    ("llama4-17b-16e", "tpu7x", "4x4x4", 2, 8192), ("mistral-7b", "v5e", "4x8", 1, 4096), ("mistral-7b", "v6e", "4x4", 2, 8192),
    ("mixtral-8x7b", "v5p", "4x4x4", 2, 4096), ("mixtral-8x22b", "tpu7x", "4x4x4", 2, 4096), ("olmo3-7b", "v6e", "4x4", 2, 4096), ("olmo3-32b", "tpu7x", "2x2x4", 2, 8192),
    ("qwen2.5-7b", "v6e", "4x4", 2, 4096), ("qwen2.5-14b", "v5p", "2x2x4", 2, 8192), ("qwen3-0.6b", "v5e", "2x2", 2, 4096),
    ("qwen3-4b", "v6e", "2x4", 1, 4096), ("qwen3-8b", "tpu7x", "2x2x1", 2, 8192), ("qwen3-32b", "v6e", "8x8", 1, 4096), ("qwen3-30b-a3b", "tpu7x", "2x2x4", 2, 4096),
    ("qwen3-30b-a3b", "v6e", "8x8", 1, 4096), ("qwen3-235b-a22b", "tpu7x", "4x4x8", 2, 4096), ("qwen3-custom-30b-a3b", "tpu7x", "2x2x4", 2, 4096), ("qwen3-next-80b-a3b", "tpu7x", "4x4x4", 1, 4096),
    ("qwen3.5-35b-a3b", "tpu7x", "2x4x4", 1, 4096), ("envy-switch-base", "tpu7x", "2x2x2", 2, 2048), ("gemma4-26b", "tpu7x", "2x2x4", 1, 4096), ("gemma4-31b", "tpu7x", "2x2x4", 1, 4096))


def families():
    for model, chip, topology, batch, seq in FAMILIES:
        base = {**BASE, "ici_fsdp_parallelism": -1, "per_device_batch_size": batch, "max_target_length": seq}
        name = f"{model}-{chip}-{topology}"
        yield case(f"family-{name}-full", chip, model, base, topology=topology)
        kept = {**base, "remat_policy": "custom", "decoder_layer_input": "device", "context": "device", "query_proj": "device"}
        yield case(f"family-{name}-attention", chip, model, kept, topology=topology)


def recipes(path):
    seen = set()
    for row in json.load(open(path)):
        request = row["request"]
        # time, not memory, depends on the flags of the network and on the number of slices
        key = json.dumps([request["model"], request["cluster"], request["config"]], sort_keys=True)
        if key not in seen:
            seen.add(key)
            # measured with releases in which a key beside a model file needed no leave
            config = {**request["config"], "override_model_config": True}
            yield {"id": "recipe-" + row["id"], "request": {**request, "config": config}}


MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../engine/catalog/data/models.json")
SLICES = {"tpu7x": ["2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8"], "v6e": ["2x4", "4x4", "4x8", "8x8", "8x16"],
          "v5p": ["2x2x2", "2x2x4", "2x4x4", "4x4x4"], "v5e": ["4x4", "4x8", "8x8"], "v4": ["2x2x4", "2x4x4", "4x4x4"]}
HBM_GB = {"tpu7x": 192, "v6e": 32, "v5p": 95, "v5e": 16, "v4": 32}


def ask(command, request, quietly=False):
    """The program's answer, or None and a line that says why."""
    run = subprocess.run([os.environ.get("ADVISOR", "build/tpu-advisor"), command, "-"], input=json.dumps(request),
                         capture_output=True, text=True, check=False)
    if run.returncode and not quietly:
        print(request["model"], run.stderr.strip()[:200])
    return None if run.returncode else json.loads(run.stdout)


def needs_tokenizer(answer):
    """Whether MaxText opens the model's tokenizer before it compiles, which takes a token of the user's."""
    return any(warning["code"] == "engram-tokenizer"
               for plan in answer["ranked"][:1] for warning in plan["estimate"]["warnings"])


def billions_of_parameters():
    """Of every model of the catalog that compiles without a token."""
    sizes = {}
    for model in json.load(open(MODELS, encoding="utf-8"))["models"]:
        answer = ask("advise", {"model": model["name"], "cluster": {"chip": "tpu7x", "topology": "4x4x8"},
                                "workload": {"seq_len": 2048, "global_batch_sequences": 256}})
        if answer and not needs_tokenizer(answer):
            sizes[model["name"]] = answer["model"]["params_total"] / 1e9
    return sizes


def draw(seed, count):
    generator = random.Random(seed)
    sizes = billions_of_parameters()
    while count > 0:
        model = generator.choice(sorted(sizes))
        chip = generator.choice(sorted(SLICES))
        topology = generator.choice(SLICES[chip])
        chips = 1
        for size in topology.split("x"):
            chips *= int(size)
        seq = generator.choice([2048, 4096, 8192, 16384, 32768])
        batch = chips * generator.choice([1, 2, 4, 8])
        if sizes[model] * 14 > chips * HBM_GB[chip] * 0.6 or sizes[model] * 400 < chips:
            continue
        count -= 1
        yield {"model": model, "cluster": {"chip": chip, "topology": topology},
               "workload": {"seq_len": seq, "global_batch_sequences": batch}}


def plans(seed, count, ranks, quantization=None):
    for job in draw(seed, count):
        cluster, work = job["cluster"], job["workload"]
        name = f"{job['model']}-{cluster['chip']}-{cluster['topology']}-s{work['seq_len']}-b{work['global_batch_sequences']}"
        if quantization:
            work["quantization"] = quantization
            name += f"-{quantization}"
        answer = ask("advise", job)
        ranked = answer["ranked"][:ranks] if answer else []
        if not ranked:
            print(name, "has no plan")
        for plan in ranked:
            request = {"model": job["model"], "cluster": cluster, "config": plan["config"], "xla_flags": plan["xla_flags"]}
            digest = zlib.crc32(json.dumps(request, sort_keys=True).encode()) & 0xFFFF
            estimate = plan["estimate"]
            drawn = {"seed": seed, "rank": plan["rank"], "predicted_bytes_per_device": estimate["hbm_bytes_per_device"],
                     "fit_probability": estimate["fit_probability"]}
            yield {"id": f"plan-{name}-r{plan['rank']}-{digest:04x}", "request": request, "drawn": drawn}


PRESETS = POLICIES[:-1]
TILES = ("sa_block_q", "sa_block_kv", "sa_block_kv_compute", "sa_block_q_dkv", "sa_block_kv_dkv", "sa_block_kv_dkv_compute")


def draw_mesh(generator, cluster, routed):
    """Degrees by axis: each physical axis of the slice goes to one logical axis."""
    physical = [int(size) for size in cluster["topology"].split("x")] + ([2] if cluster["chip"] == "tpu7x" else [])
    axes = ["fsdp", "fsdp", "tensor", "tensor", "context", "data", "fsdp_transpose"] + (["expert"] * 2 if routed else [])
    degrees = {"fsdp": 1}
    for size in physical:
        axis = generator.choice(axes) if generator.random() < 0.7 else "fsdp"
        degrees[axis] = degrees.get(axis, 1) * size
    return {axis: degree for axis, degree in degrees.items() if degree > 1 or axis == "fsdp"}


def draw_configuration(generator, model, chips, flags):
    chip = generator.choice(chips)
    cluster = {"chip": chip, "topology": generator.choice(SLICES[chip])}
    degrees = draw_mesh(generator, cluster, model["keys"].get("num_experts", 1) > 1)
    seq, batch = generator.choice([2048, 4096, 8192, 16384, 32768]), generator.choice([0.25, 0.5, 1, 2, 4, 8])
    shared = batch * degrees.get("tensor", 1) * degrees.get("context", 1)
    if shared < 1 or shared % 1:
        return None
    config = {"model_name": model["name"], **{f"ici_{axis}_parallelism": degree for axis, degree in degrees.items()},
              "max_target_length": seq, "per_device_batch_size": batch, "attention": "flash", "override_model_config": True,
              "remat_policy": "full" if generator.random() < 0.4 else generator.choice(PRESETS)}
    if generator.random() < 0.6:
        config["sa_use_fused_bwd_kernel"] = True
    config.update(dict.fromkeys(TILES, generator.choice([512, 1024, 2048])) if generator.random() < 0.7 else {})
    if generator.random() < 0.2:
        config["gradient_accumulation_steps"] = generator.choice([2, 4])
    if generator.random() < 0.2:
        config["num_vocab_tiling"] = generator.choice([2, 4, 8])
    return {"model": model["name"], "cluster": cluster, "config": config,
            "xla_flags": flags[chip] if generator.random() < 0.7 else []}


def usual_flags(chips):
    """What `advise` sets for a dense model of a chip."""
    job = {"model": "llama3.1-8b", "workload": {"seq_len": 4096, "per_device_batch_size": 1}}
    return {chip: ask("advise", {**job, "cluster": {"chip": chip, "topology": SLICES[chip][1]}})["ranked"][0]["xla_flags"]
            for chip in chips}


def configurations(seed, count, chips):
    """Legal ones that fill a fifth of the memory to a little more than all of it."""
    generator, flags = random.Random(seed), usual_flags(chips)
    models = json.load(open(MODELS, encoding="utf-8"))["models"]
    while count > 0:
        request = draw_configuration(generator, generator.choice(models), chips, flags)
        answer = ask("estimate", request, quietly=True) if request else None
        if not answer:
            continue
        estimate = answer.get("estimate", answer)
        bytes_ = estimate["hbm_bytes_per_device"]
        refused = any(warning["code"] == "split-axes" for warning in estimate["warnings"])
        if refused or not 0.2 < bytes_ / estimate["hbm_limit_bytes_per_device"] < 1.05:
            continue
        count -= 1
        cluster, config = request["cluster"], request["config"]
        degrees = "".join(f"-{key[4:-12]}{config[key]}" for key in config if key.endswith("_parallelism") and config[key] > 1)
        digest = zlib.crc32(json.dumps(request, sort_keys=True).encode()) & 0xFFFF
        yield {"id": f"user-{request['model']}-{cluster['chip']}-{cluster['topology']}{degrees}-{config['remat_policy']}-{digest:04x}",
               "request": request, "drawn": {"seed": seed, "predicted_bytes_per_device": bytes_,
                                             "fit_probability": estimate["fit_probability"]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=("options", "families", "recipes", "plans", "configurations"))
    parser.add_argument("out")
    parser.add_argument("rows", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--quantization")
    parser.add_argument("--chips", default=",".join(SLICES))
    options = parser.parse_args()
    made = {"options": lambda: [*dense_options(), *routed_options(), *quantized_options(), *unscanned_options(),
                                *linear_options(), *nested_options()], "families": lambda: [*families()],
            "recipes": lambda: [*recipes(options.rows)],
            "configurations": lambda: [*configurations(options.seed, options.jobs, options.chips.split(","))],
            "plans": lambda: [*plans(options.seed, options.jobs, options.ranks, options.quantization)]}[options.kind]()
    with open(options.out, "w", encoding="utf-8") as out:
        json.dump(made, out, indent=0)
    print(len(made), "cases")


if __name__ == "__main__":
    main()
