#include "engine/cost/step.h"

#include <stddef.h>

#include "engine/cost/schedule.h"
#include "engine/cost/scratch.h"

/* Tokens of all microbatches: embedding and logits run outside the pipeline, on every stage's share. */
static double head_tokens(const struct adv_cost *cost)
{
    return adv_plan_tokens(cost->plan);
}

static double head_matmul_s(const struct adv_cost *cost)
{
    double rows = head_tokens(cost) * cost->tp;
    return adv_cost_matmul_s(cost, rows, (double)cost->model->emb_dim,
                             (double)cost->model->vocab_size / cost->tp, false);
}

/* Of one device's share of the vocabulary. */
static double head_weight_bytes(const struct adv_cost *cost)
{
    return 2.0 * (double)cost->model->vocab_size * (double)cost->model->emb_dim / cost->tp;
}

static double head_gradient_bytes(const struct adv_cost *cost)
{
    return head_weight_bytes(cost) / 2.0 * adv_cost_gradient_bytes(cost->plan);
}

/* The rows of a table by a one-hot matmul, forward and backward. */
static double one_hot_s(const struct adv_cost *cost, double tokens, double rows)
{
    if (rows <= 0.0) return 0.0;
    return 2.0 *
           adv_cost_matmul_s(cost, tokens * cost->tp, rows / cost->tp, (double)cost->model->emb_dim, false);
}

/* The times of gathering the head's weights forward, scattering their gradients, its matmul and the
 * embedding. */
static struct adv_cost_head_times head_times(const struct adv_cost *cost)
{
    double tokens = head_tokens(cost);
    double vocab = (double)cost->model->vocab_size;
    double emb = (double)cost->model->emb_dim;
    double weight_bytes = head_weight_bytes(cost);
    double positions = (double)cost->model->position_rows; /* looked up as words are */
    double rows_bytes = 2.0 * emb * tokens * 5.0; /* read and written, gradient rows read, sorted and added */
    return (struct adv_cost_head_times){
        .known = true,
        .matmul_s = head_matmul_s(cost),
        .gather_s = adv_cost_collective_s(cost, &cost->dense_group, ADV_COLLECTIVE_ALL_GATHER, weight_bytes),
        .scatter_s = adv_cost_collective_s(cost, &cost->dense_group, ADV_COLLECTIVE_REDUCE_SCATTER,
                                           head_gradient_bytes(cost)),
        .embedding_s = cost->plan->family.use_iota_embed
                           ? one_hot_s(cost, tokens, vocab) + one_hot_s(cost, tokens, positions)
                           : adv_cost_stream_s(cost, rows_bytes),
        .embedding_flops = cost->plan->family.use_iota_embed ? 4.0 * tokens * (vocab + positions) * emb : 0.0,
        .embedding_bytes = cost->plan->family.use_iota_embed ? 0.0 : rows_bytes,
    };
}

/* The same, remembered in the scratch. */
static struct adv_cost_head_times head_times_of(const struct adv_cost *cost)
{
    if (!cost->scratch) return head_times(cost);
    struct adv_cost_head_times *known = &cost->scratch->head;
    if (!known->known) *known = head_times(cost);
    return *known;
}

static void add_logits(const struct adv_cost *cost, const struct adv_cost_head_times *head, double times,
                       struct adv_account *account)
{
    double tokens = head_tokens(cost);
    double vocab = (double)cost->model->vocab_size;
    /* forward, data gradient, weight gradient; tiling recomputes each tile's logits in the backward pass */
    double matmuls = cost->plan->num_vocab_tiling > 1 ? 4.0 : 3.0;
    adv_account_busy(account, ADV_TERM_LOGITS, matmuls * head->matmul_s, times,
                     matmuls * 2.0 * tokens * vocab * (double)cost->model->emb_dim, 0.0);
    double bytes = cost->constants->cross_entropy_bytes * tokens * vocab;
    adv_account_busy(account, ADV_TERM_CROSS_ENTROPY, adv_cost_stream_s(cost, bytes), times, 0.0, bytes);
    double exposed_s =
        adv_schedule_exposed_s(cost, 2.0 * head->gather_s, head->scatter_s, matmuls * head->matmul_s);
    adv_account_hidden(account, ADV_TERM_FSDP_GATHER, 2.0 * head->gather_s + head->scatter_s, exposed_s,
                       times, 2.0 * head_weight_bytes(cost) + head_gradient_bytes(cost));
}

void adv_cost_head(const struct adv_cost *cost, struct adv_account *account)
{
    double times = cost->plan->family.gradient_accumulation_steps;
    const struct adv_cost_head_times head = head_times_of(cost);
    add_logits(cost, &head, times, account);
    adv_account_busy(account, ADV_TERM_EMBEDDING, head.embedding_s, times, head.embedding_flops,
                     head.embedding_bytes);
}

adv_code adv_cost_mtp(const struct adv_cost *cost, struct adv_account *account, adv_err *err)
{
    if (cost->plan->family.mtp_layers <= 0) return ADV_OK;
    const struct adv_layer *last = &cost->model->layers[cost->model->layer_kinds_count - 1];
    struct adv_account scratch = {.ledger = NULL};
    struct adv_layer_time time;
    adv_code code = adv_cost_layer_fixed(cost, last, 1.0, &scratch, &time, err);
    if (code == ADV_OK) code = adv_cost_layer_placed(cost, last, 1.0, &scratch, &time, err);
    if (code != ADV_OK) return code;
    double emb = (double)cost->model->emb_dim;
    double projection_s = 3.0 * adv_cost_matmul_s(cost, cost->tokens, 2.0 * emb, emb, cost->quantizes_dense);
    double head_s = 3.0 * head_matmul_s(cost);
    double flops = 6.0 * cost->tokens * 2.0 * emb * emb;
    for (int i = 0; i < ADV_TERM_COUNT; i++) flops += scratch.slots[i].flops;
    double head_flops = 6.0 * head_tokens(cost) * emb * (double)cost->model->vocab_size;
    /* behind the pipeline, where each device has its own sequences of all microbatches, and in one piece */
    double microsteps = cost->plan->family.gradient_accumulation_steps;
    double passes = cost->passes / cost->stages / microsteps;
    adv_account_busy(account, ADV_TERM_MTP, (adv_account_total_s(&scratch) + projection_s) * passes + head_s,
                     cost->plan->family.mtp_layers * microsteps, flops * passes + head_flops, 0.0);
    return ADV_OK;
}
