/* index.c: DeepSeek's sparse-attention indexer, in front of a layer's attention.
 *
 * From layers/attention_mla.py of MaxText 0.2.5 (Indexer.__call__, generate_mask): every query is scored
 * against every key of the sequence, causal or not, by a few narrow heads, [b, t, s]; a top-k over s finds
 * the lowest score that stays; two running counts settle ties; the outcome is a mask for the flash kernel,
 * which computes all blocks as it would without. Gradients are stopped, so there is no backward pass, and
 * nothing of it has a name in remat policies: it runs again in the recompute. Up to indexer_topk keys none of
 * it runs.
 *
 * XLA fuses the heads' scores [b, t, s, h] into their weighted sum: they never reach HBM (compiled with
 * libtpu 0.0.50.1). It makes the top-k a sort of whole rows. No step with it is measured: the estimate says
 * extrapolated.
 */
#include <math.h>

#include "engine/cost/layer.h"
#include "engine/kernel/core.h"

/* Vector work of a register of scores (a rectifier, a weight, a sum), over that of softmax in the flash
 * kernel: XLA counts 3.2 cycles for it on tpu7x, 4.8 on v6e, where the kernel takes 2.0 and 2.2. */
static const double score_work = 2.0;

/* The same of one stage of a sort that carries positions along: a comparison and four selections. An
 * assumption: XLA counts no cycles for sorts. */
static const double sort_stage_work = 1.0;

/* HBM bytes that a pair of query and key takes, 46 around its sort and 94 in the mask's counts: read off the
 * operations that XLA compiles them to at 4,096 tokens. */
static const double pair_bytes = 140.0;

static const double vreg_elements = 1024.0;

/* Stages of a bitonic sort of `length` elements. */
static double sort_stages(double length)
{
    const double levels = ceil(log2(length));
    return levels * (levels + 1.0) / 2.0;
}

/* Seconds of one layer's index in one pass, its products and its HBM bytes. */
static double index_s(const struct adv_cost *cost, const struct adv_layer *layer, double *flops,
                      double *bytes)
{
    const double keys = (double)cost->plan->family.seq_len;
    const double vreg_s = cost->constants->splash_fwd_vreg_s / (adv_core_count(cost->chip) * vreg_elements);
    /* heads are sharded over tensor axes, their sum and all behind it is not */
    const double scores = cost->tokens * keys * layer->indexer_heads;
    const double pairs = adv_cost_index_pairs(cost, layer);
    *flops = 2.0 * scores * layer->indexer_head_dim;
    *bytes = pair_bytes * pairs;
    const double score_s = adv_max(*flops / cost->bf16_flops_per_s, score_work * vreg_s * scores);
    const double sort_s = sort_stages(keys) * sort_stage_work * vreg_s * pairs;
    return score_s + sort_s + adv_cost_stream_s(cost, *bytes);
}

void adv_cost_index(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                    struct adv_account *account, struct adv_layer_time *time)
{
    double flops = 0.0, bytes = 0.0;
    if (adv_cost_index_pairs(cost, layer) <= 0.0) return;
    const double seconds = index_s(cost, layer, &flops, &bytes);
    adv_cost_add(account, time, ADV_PASS_FWD, ADV_TERM_INDEX_FWD, seconds, times, flops, bytes);
    adv_cost_add(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_INDEX_RECOMPUTE, seconds, times, flops, bytes);
}
