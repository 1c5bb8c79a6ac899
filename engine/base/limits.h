/* limits.h: the declared maximum of every buffer and list, with its reason. */
#pragma once

#define ADV_LIMIT_BODY_BYTES   (1024 * 1024) /* api: body 1 MiB; a whole recipe is 5 KiB */
#define ADV_LIMIT_JSON_DEPTH   32            /* api: nesting 32; the deepest real document has 7 */
#define ADV_LIMIT_FINDINGS     48            /* errors or warnings reported of one document */
#define ADV_LIMIT_POINTER      128           /* JSON pointer of a finding */
#define ADV_LIMIT_DETAIL       320           /* sentence of a finding, with its numbers */
#define ADV_LIMIT_NAME         96            /* model, chip, topology, key names; longest known 61 */
#define ADV_LIMIT_LAYER_KINDS  8             /* unlike decoder layers in one model; deepseek4 has 5 */
#define ADV_LIMIT_XLA_FLAGS    128           /* flags of one plan; the longest recipe has 43 */
#define ADV_LIMIT_XLA_FLAG     4096          /* one flag with its value; lists of names are long */
#define ADV_LIMIT_CONFIG_KEYS  1024          /* keys of one configuration; MaxText has 775, recipes 60 */
#define ADV_LIMIT_LEDGER_TERMS 96            /* cost terms of one step; the fullest plan writes about 60 */
#define ADV_LIMIT_MEMORY_PARTS 40            /* memory parts of one plan */
#define ADV_LIMIT_KERNELS      24            /* distinct kernels listed in one estimate */
#define ADV_LIMIT_ADVICE       24            /* pieces of advice in one estimate */
#define ADV_LIMIT_RINGS        8             /* physical factors under one logical axis */
#define ADV_LIMIT_GROUPS       4096 /* groups of a grouped matmul; largest known model has 512 experts */
#define ADV_LIMIT_RANKED       100  /* search.top_k */
#define ADV_LIMIT_TIMELINE_STEPS                                                                             \
    512 /* grid steps listed one by one; 250 bytes each as JSON, four bars each in a trace */
#define ADV_LIMIT_TIMELINE_WALK (1 << 20) /* grid steps walked for one timeline; about 20 ms */
#define ADV_LIMIT_BATCH_DOCUMENTS                                                                            \
    100000 /* documents in the array given to a one-shot command; 5000 kernel timings are published */
#define ADV_LIMIT_ARENA_BYTES (64u * 1024u * 1024u) /* one request; of a larger space a part is searched */
#define ADV_LIMIT_CONFIG_TEXT_BYTES                                                                          \
    (16u * 1024u) /* of a configuration that is told; whole recipes have 5 KiB */
