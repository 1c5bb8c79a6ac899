/* names.h: MaxText keys that other folders ask for by name. A misspelt one does not compile. */
#ifndef ADV_MAXTEXT_NAMES_H
#define ADV_MAXTEXT_NAMES_H

#define ADV_NAME_ALLOW_SPLIT_PHYSICAL_AXES           "allow_split_physical_axes"
#define ADV_NAME_BASE_EMB_DIM                        "base_emb_dim"
#define ADV_NAME_COMPILE_TOPOLOGY                    "compile_topology"
#define ADV_NAME_COMPILE_TOPOLOGY_NUM_SLICES         "compile_topology_num_slices"
#define ADV_NAME_CUSTOM_MESH_AND_RULE                "custom_mesh_and_rule"
#define ADV_NAME_DENSE_FSDP_USE_TWO_STAGE_ALL_GATHER "dense_fsdp_use_two_stage_all_gather"
#define ADV_NAME_DQ_REDUCTION_STEPS                  "dq_reduction_steps"
#define ADV_NAME_GRADIENT_ACCUMULATION_STEPS         "gradient_accumulation_steps"
#define ADV_NAME_MEGABLOX                            "megablox"
#define ADV_NAME_MODEL_NAME                          "model_name"
#define ADV_NAME_MOE_FSDP_USE_TWO_STAGE_ALL_GATHER   "moe_fsdp_use_two_stage_all_gather"
#define ADV_NAME_NUM_LAYERS_PER_PIPELINE_STAGE       "num_layers_per_pipeline_stage"
#define ADV_NAME_NUM_PIPELINE_MICROBATCHES           "num_pipeline_microbatches"
#define ADV_NAME_NUM_VOCAB_TILING                    "num_vocab_tiling"
#define ADV_NAME_OPT_TYPE                            "opt_type"
#define ADV_NAME_OPTIMIZER_MEMORY_HOST_OFFLOAD       "optimizer_memory_host_offload"
#define ADV_NAME_OVERRIDE_MODEL_CONFIG               "override_model_config"
#define ADV_NAME_PER_DEVICE_BATCH_SIZE               "per_device_batch_size"
#define ADV_NAME_REMAT_POLICY                        "remat_policy"
#define ADV_NAME_SA_USE_FUSED_BWD_KERNEL             "sa_use_fused_bwd_kernel"
#define ADV_NAME_SHARD_EXP_ON_FSDP                   "shard_exp_on_fsdp"
#define ADV_NAME_USE_IOTA_EMBED                      "use_iota_embed"
#define ADV_NAME_USE_RING_OF_EXPERTS                 "use_ring_of_experts"
#define ADV_NAME_USE_TOKAMAX_GMM                     "use_tokamax_gmm"

#endif
