/* account.h: the running sum of one prediction, one slot per cost term, and the table of all terms.
 *
 * Cost functions add to slots; adv_account_write() turns the slots that were used into ledger rows. Slots
 * keep the search's fast path free of strings. A term = one row of the table.
 */
#pragma once

#include "engine/cost/ledger.h"

/* id, name, resource, formula (engine/README.md), group, source of the formula */
#define ADV_TERM_TABLE(X)                                                                                    \
    X(MATMUL_FWD, "matmul_forward", MXU, "T-matmul", MATMUL, "padded FLOPs over MXU rate, or HBM bytes")     \
    X(MATMUL_RECOMPUTE, "matmul_recompute", MXU, "T-matmul", MATMUL_AGAIN,                                   \
      "matmuls whose outputs are not saved")                                                                 \
    X(MATMUL_BWD, "matmul_backward", MXU, "T-matmul", MATMUL, "data and weight gradients")                   \
    X(ATTENTION_FWD, "attention_forward", VPU, "T-attention", ATTENTION, "kernel simulation")                \
    X(ATTENTION_RECOMPUTE, "attention_recompute", VPU, "T-attention", ATTENTION_AGAIN, "kernel simulation")  \
    X(ATTENTION_BWD, "attention_backward", VPU, "T-attention", ATTENTION, "kernel simulation")               \
    X(INDEX_FWD, "sparse_index_forward", VPU, "T-index", ATTENTION, "scores of all keys, top-k and mask")    \
    X(INDEX_RECOMPUTE, "sparse_index_recompute", VPU, "T-index", ATTENTION_AGAIN, "the same, recomputed")    \
    X(GMM_FWD, "expert_matmul_forward", MXU, "T-gmm", EXPERTS, "kernel simulation")                          \
    X(GMM_RECOMPUTE, "expert_matmul_recompute", MXU, "T-gmm", EXPERTS_AGAIN, "kernel simulation")            \
    X(GMM_BWD, "expert_matmul_backward", MXU, "T-gmm", EXPERTS, "kernel simulation")                         \
    X(ROUTE_FWD, "expert_routing_forward", HBM, "T-route", ROUTING,                                          \
      "permute, unpermute, activation traffic")                                                              \
    X(ROUTE_RECOMPUTE, "expert_routing_recompute", HBM, "T-route", ROUTING_AGAIN,                            \
      "permute and activation again")                                                                        \
    X(ROUTE_BWD, "expert_routing_backward", HBM, "T-route", ROUTING, "gradients of permute and unpermute")   \
    X(ELEMENTWISE_FWD, "elementwise_forward", HBM, "T-elementwise", ELEMENTWISE,                             \
      "norms, rotary, residual, activation")                                                                 \
    X(ELEMENTWISE_RECOMPUTE, "elementwise_recompute", HBM, "T-elementwise", ELEMENTWISE_AGAIN,               \
      "the same, recomputed")                                                                                \
    X(ELEMENTWISE_BWD, "elementwise_backward", HBM, "T-elementwise", ELEMENTWISE, "their gradients")         \
    X(QUANTIZE_ACTIVATIONS, "quantize_activations", HBM, "T-quantize", NONE,                                 \
      "scaling and casting activations")                                                                     \
    X(QUANTIZE_WEIGHTS, "quantize_weights", HBM, "T-quantize", NONE, "casting gathered weights, every pass") \
    X(EMBEDDING, "embedding", MXU, "T-embedding", NONE, "one-hot matmul or gather")                          \
    X(LOGITS, "logits", MXU, "T-logits", LOGITS, "head matmuls")                                             \
    X(CROSS_ENTROPY, "cross_entropy", HBM, "T-logits", LOSS, "loss over the vocabulary")                     \
    X(MTP, "multi_token_prediction", MXU, "T-mtp", NONE, "extra decoder layer and head")                     \
    X(FSDP_GATHER, "fsdp_all_gather", ICI, "T-fsdp", GATHER, "weights, forward and backward")                \
    X(FSDP_SCATTER, "fsdp_reduce_scatter", ICI, "T-fsdp", SCATTER, "gradients")                              \
    X(DATA_REDUCE, "data_all_reduce", ICI, "T-dp", NONE, "gradients over the data axis")                     \
    X(TENSOR, "tensor_collectives", ICI, "T-tp", NONE, "activations around each block")                      \
    X(TRANSPOSE, "fsdp_transpose_collectives", ICI, "T-tp", NONE,                                            \
      "tokens meet where the width stays sharded")                                                           \
    X(CONTEXT, "context_collectives", ICI, "T-cp", NONE, "keys and values, or heads")                        \
    X(RING_MERGE, "ring_attention_merge", LATENCY, "T-cp", NONE, "fixed cost of each step of the ring")      \
    X(EXPERT, "expert_collectives", ICI, "T-ep", NONE, "dispatch and combine")                               \
    X(PIPELINE_PERMUTE, "pipeline_permute", ICI, "T-pp", NONE, "microbatch hand-over")                       \
    X(PIPELINE_BUBBLE, "pipeline_bubble", LATENCY, "T-pp", NONE, "idle stages")                              \
    X(HOST_OFFLOAD, "host_offload", PCIE, "T-host", NONE, "saved tensors to the host and back")              \
    X(OPTIMIZER, "optimizer_update", HBM, "T-optimizer", NONE, "weights, gradients and moments")             \
    X(OPTIMIZER_OFFLOAD, "optimizer_offload", PCIE, "T-optimizer", NONE, "moments from the host and back")   \
    X(DCN_REDUCE, "dcn_gradient_reduce", DCN, "T-dcn", SLICES, "gradients between slices")                   \
    X(DCN_WEIGHTS, "dcn_weight_gather", DCN, "T-dcn", SLICES, "weights sharded over slices")                 \
    X(DCN_ACTIVATIONS, "dcn_activations", DCN, "T-dcn", SLICES, "activations of axes that span slices")      \
    X(DCN_STRAGGLER, "multislice_straggler", DCN, "T-dcn", SLICES, "the slowest slice of many")              \
    X(SOFTWARE_AGE, "software_age", LATENCY, "T-software", NONE,                                             \
      "compilers of the generation's first months")                                                          \
    X(STEP_OVERHEAD, "step_overhead", LATENCY, "T-overhead", NONE, "dispatch of one step")

#define ADV_TERM_ENUM(id, name, resource, formula, group, source) ADV_TERM_##id,
enum adv_term_id { ADV_TERM_TABLE(ADV_TERM_ENUM) ADV_TERM_COUNT };
#undef ADV_TERM_ENUM

struct adv_slot {
    double seconds, exposed_seconds, count, flops, bytes;
};

/* What lengthens the step, side by side: all that a search needs. */
struct adv_exposed {
    double seconds[ADV_TERM_COUNT]; /* equal to the slots' exposed_seconds */
    double hand_overs_s;            /* of a pipeline, in and between slices: among the others */
};

struct adv_account {
    struct adv_exposed exposed;
    bool only_exposed; /* nothing is written to the slots */
    struct adv_slot slots[ADV_TERM_COUNT];
    struct adv_ledger *ledger;    /* NULL in the search; kernels are listed here */
    struct adv_step_trace *trace; /* NULL but where each layer kind is looked at by itself: cost/trace.h */
};

/* Adds time of another resource of which only `exposed_seconds` lengthen the step. `times` = how often. */
static inline void adv_account_hidden(struct adv_account *account, enum adv_term_id id, double seconds,
                                      double exposed_seconds, double times, double bytes)
{
    account->exposed.seconds[id] += exposed_seconds * times;
    if (account->only_exposed) return;
    struct adv_slot *slot = &account->slots[id];
    slot->seconds += seconds * times;
    slot->exposed_seconds += exposed_seconds * times;
    slot->count += times;
    slot->bytes += bytes * times;
}

/* Adds time that the TensorCore itself spends: all of it is exposed. */
static inline void adv_account_busy(struct adv_account *account, enum adv_term_id id, double seconds,
                                    double times, double flops, double bytes)
{
    adv_account_hidden(account, id, seconds, seconds, times, bytes);
    if (!account->only_exposed) account->slots[id].flops += flops * times;
}

/* Sum of all exposed parts: the step time. Added up in lanes, side by side: the search waits for this sum in
 * every plan. */
enum { ADV_ACCOUNT_LANES = 4 };
double adv_account_total_s(const struct adv_account *account);

/* The same sum of two accounts' parts together, open at one term that neither has: transfers to the host. It
 * is closed for many values of that. */
enum {
    ADV_ACCOUNT_OPEN_LANE = ADV_TERM_HOST_OFFLOAD % ADV_ACCOUNT_LANES,
    ADV_ACCOUNT_BEHIND_OPEN = (ADV_TERM_COUNT - 1 - ADV_TERM_HOST_OFFLOAD) / ADV_ACCOUNT_LANES
};
struct adv_open_sum {
    double lanes_s[ADV_ACCOUNT_LANES];        /* the open term's up to that */
    double behind_s[ADV_ACCOUNT_BEHIND_OPEN]; /* what comes behind it in its lane */
};
struct adv_open_sum adv_account_open_sum(const struct adv_exposed *a, const struct adv_exposed *b);
static inline double adv_account_closed_s(const struct adv_open_sum *sum, double host_offload_s)
{
    double lanes_s[ADV_ACCOUNT_LANES];
    for (int lane = 0; lane < ADV_ACCOUNT_LANES; lane++) lanes_s[lane] = sum->lanes_s[lane];
    lanes_s[ADV_ACCOUNT_OPEN_LANE] += host_offload_s;
    for (int i = 0; i < ADV_ACCOUNT_BEHIND_OPEN; i++) lanes_s[ADV_ACCOUNT_OPEN_LANE] += sum->behind_s[i];
    return lanes_s[0] + lanes_s[1] + (lanes_s[2] + lanes_s[3]);
}

/* Seconds of the step each resource accounts for: its terms' exposed parts. Hidden time decides
 * nothing. */
void adv_account_resources(const struct adv_account *account, double seconds[ADV_RES_COUNT]);

/* Writes the used slots to account->ledger, in table order, and brings its kernels into theirs. */
void adv_account_write(const struct adv_account *account);

/* Lists a kernel with its shape and tile in the ledger; of equal ones the counts are added up. */
void adv_account_kernel(struct adv_account *account, const struct adv_kernel_use *use);
