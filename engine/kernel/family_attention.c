/* family_attention.c: the rows of attention: the splash kernels, and XLA's own attention. */
#include <math.h>
#include <stdio.h>

#include "engine/kernel/family.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/splash_blocks.h"
#include "engine/kernel/tune_space.h"

#define AT(path) ADV_KERNEL_AT(path)
#define BIT(id)  ADV_KERNEL_BIT(id)
#define EVERY    ADV_KERNEL_EVERY
#define OF_FWD   (BIT(SPLASH_FWD) | BIT(SPLASH_FWD_RESIDUALS))
#define OF_DKV   (BIT(SPLASH_BWD_FUSED) | BIT(SPLASH_BWD_DKV))
#define OF_DQ    BIT(SPLASH_BWD_DQ)
#define SHAPE(member, holds, least, most, needers, what)                                                     \
    ADV_KERNEL_MEMBER(#member, holds, AT(attention.member), least, most, EVERY, needers, what)
#define BLOCK(member, kernels, needers, what)                                                                \
    ADV_KERNEL_MEMBER(#member, TILE, AT(tile.attention.blocks.member), 1, LEN_MAX, kernels, needers, what)
#define LAYOUT(member)                                                                                       \
    ADV_KERNEL_MEMBER(#member, LAYOUT, AT(tile.attention.member), 0, 0, EVERY, 0,                            \
                      "HEAD_DIM_MINOR (1) or SEQ_MINOR (2)")

enum { LEN_MAX = ADV_KERNEL_LEN_MAX, HEADS_MAX = ADV_KERNEL_HEADS_MAX, DIM_MAX = ADV_KERNEL_HEAD_DIM_MAX };

static const struct adv_kernel_member shape_members[] = {
    SHAPE(batch, NUMBER, 1e-3, 1e6, 0, "sequences on the device; 1 when left out"),
    SHAPE(q_heads, INT, 1, HEADS_MAX, EVERY, "query heads on the device"),
    SHAPE(kv_heads, INT, 1, HEADS_MAX, EVERY, "key-value heads on the device; a divisor of q_heads"),
    SHAPE(q_len, SIZE, 1, LEN_MAX, EVERY, "queries of one sequence on the device"),
    SHAPE(kv_len, SIZE, 1, LEN_MAX, 0, "keys they may see; q_len times context_shards when left out"),
    SHAPE(head_dim_qk, INT, 1, DIM_MAX, EVERY, "size of a query and key head"),
    SHAPE(head_dim_v, INT, 1, DIM_MAX, 0, "size of a value head; head_dim_qk when left out"),
    SHAPE(causal, BOOL, 0, 0, 0, "true when left out"),
    SHAPE(window, SIZE, 0, LEN_MAX, 0, "sliding window in tokens; causal only"),
    SHAPE(chunk, SIZE, 0, LEN_MAX, 0, "attention inside chunks of this many tokens; causal only"),
    SHAPE(segment_ids, BOOL, 0, 0, 0, "packed sequences are masked from each other"),
    SHAPE(context_shards, INT, 1, ADV_KERNEL_SHARDS_MAX, 0, "devices that share one sequence"),
    SHAPE(context_load_balanced, BOOL, 0, 0, 0,
          "each shard holds an early and a late part; also by MaxText's name, context_parallel_load_balance"),
    {"context_parallel_load_balance", ADV_MEMBER_BOOL, AT(attention.context_load_balanced), 0, 0, EVERY, 0,
     NULL, "context_load_balanced"},
    ADV_KERNEL_MEMBER(
        "context_parallel_strategy", STRATEGY, 0, 0, 0, EVERY, 0,
        "all_gather (when left out), ring or ulysses, as MaxText names them; q_len, q_heads and kv_heads are "
        "the device's own before any exchange, the time is the slowest shard's without the exchange"),
    SHAPE(dtype, DTYPE, 0, 0, 0, "bfloat16 when left out"),
};

static const struct adv_kernel_member tile_members[] = {
    BLOCK(block_q, OF_FWD, OF_FWD, "queries per grid step"),
    BLOCK(block_kv, OF_FWD, OF_FWD, "keys per grid step"),
    BLOCK(block_kv_compute, OF_FWD, 0, "keys per inner step; block_kv when left out"),
    BLOCK(block_q_dkv, OF_DKV, OF_DKV, "queries per grid step"),
    BLOCK(block_kv_dkv, OF_DKV, OF_DKV, "keys per grid step"),
    BLOCK(block_kv_dkv_compute, OF_DKV, 0, "keys per inner step; block_kv_dkv when left out"),
    BLOCK(block_q_dq, OF_DQ, OF_DQ, "queries per grid step"),
    BLOCK(block_kv_dq, OF_DQ, OF_DQ, "keys per grid step"),
    LAYOUT(q_layout),
    LAYOUT(k_layout),
    LAYOUT(v_layout),
    ADV_KERNEL_MEMBER("use_base2_exp", BOOL, AT(attention_base2_exp), 0, 0, EVERY, 0,
                      "taken, without effect on the time"),
    ADV_KERNEL_MEMBER("use_experimental_scheduler", BOOL, AT(attention_flags.use_experimental_scheduler), 0,
                      0, EVERY, 0, "the compiler's other instruction scheduler"),
};

static const struct adv_kernel_info splash_kernels[] = {
    {ADV_KERNEL_SPLASH_FWD, ADV_KERNEL_MEASURED(splash_fwd_measured), "splash attention, forward", NULL},
    {ADV_KERNEL_SPLASH_FWD_RESIDUALS, ADV_KERNEL_MEASURED(splash_fwd_measured),
     "splash attention, forward with log-sum-exp kept for the backward pass", NULL},
    {ADV_KERNEL_SPLASH_BWD_FUSED, ADV_KERNEL_MEASURED(splash_bwd_measured),
     "splash attention, backward in one kernel", NULL},
    {ADV_KERNEL_SPLASH_BWD_DQ, ADV_KERNEL_NEVER_MEASURED, "splash attention, backward of queries", NULL},
    {ADV_KERNEL_SPLASH_BWD_DKV, ADV_KERNEL_NEVER_MEASURED, "splash attention, backward of keys and values",
     NULL},
};

static void judge_row(const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                      adv_err *err, adv_err *warnings)
{
    const struct adv_attention_shape *s = &request->attention;
    (void)adv_legal_attention(request->kernel, s, tile ? &tile->attention : NULL, err, warnings);
    if ((request->timeline || request->trace) && s->batch != floor(s->batch))
        (void)adv_err_add(err, ADV_E_RANGE, "/shape/batch", "a whole number, or no timeline and trace",
                          "the steps of %.15g sequences cannot be drawn", s->batch);
}

static adv_code time_row(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         const struct adv_kernel_tile *tile, struct adv_kernel_time *time, adv_err *err)
{
    return adv_splash_time(machine, request->kernel, &request->attention, &tile->attention,
                           &request->attention_flags, time, err);
}

static int vmem_row(const struct adv_chip *chip, const struct adv_kernel_request *request,
                    const struct adv_kernel_tile *tile, struct adv_vmem_part parts[ADV_VMEM_PARTS])
{
    (void)chip;
    return adv_vmem_splash_parts(request->kernel, &request->attention, &tile->attention, parts);
}

static bool standard_row(const struct adv_kernel_request *request, struct adv_kernel_tile *tile)
{
    struct adv_attention_tile *t = &tile->attention;
    t->blocks = adv_tune_default_blocks(&request->attention);
    t->q_layout = t->k_layout = t->v_layout = ADV_LAYOUT_HEAD_DIM_MINOR;
    return true;
}

/* Of equals the first evaluated stays: puts the parts of each key block in the order winners like them. */
static void favour_parts(const struct adv_chip *chip, enum adv_kernel kernel,
                         struct adv_attention_tile *space, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && adv_tune_same_pair(&space[j].blocks, &space[j - 1].blocks) &&
                        adv_tune_part_share(chip, kernel, &space[j].blocks) >
                            adv_tune_part_share(chip, kernel, &space[j - 1].blocks);
             j--) {
            const struct adv_attention_tile later = space[j];
            space[j] = space[j - 1];
            space[j - 1] = later;
        }
}

/* With the layouts that the chip's winners have. */
static int list_row(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                    bool wide, void *tiles)
{
    struct adv_attention_tile *space = tiles;
    const int count = adv_splash_space(request->kernel, &request->attention, wide, space);
    const bool keys_along_head =
        machine->constants->splash_keys_head_minor > 0.5 && request->attention.head_dim_qk % 128 == 0;
    favour_parts(machine->chip, request->kernel, space, count);
    for (int i = 0; keys_along_head && i < count; i++) space[i].k_layout = ADV_LAYOUT_HEAD_DIM_MINOR;
    return count;
}

static const char *layouts_row(const struct adv_kernel_request *request, const char **why)
{
    static const char *const simulated =
        "heads that 128 does not divide leave lanes empty when they lie along them: with the sequence along "
        "the lanes fewer bytes move and less VMEM is held";
    static const char *const assumed =
        "heads of whole lanes cost the same in every layout that the model knows: these are the commonest of "
        "published winners (the keys' is a toss-up on tpu7x and v5p, nearly always HEAD_DIM_MINOR on v6e); "
        "simulate takes and prices any";
    static const char *const backward =
        "the backward kernels are priced alike in every layout: MaxText has one set of keys for both "
        "directions, so these are the forward kernel's";
    const struct adv_attention_shape *shape = &request->attention;
    const bool forward = adv_splash_is_forward(request->kernel);
    const bool padded = shape->head_dim_qk % 128 || shape->head_dim_v % 128;
    *why = !forward ? backward : padded ? simulated : assumed;
    return forward && padded ? "simulation" : "default";
}

/* Every tile member that the kernel reads has a key of its name. */
static int keys_row(const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                    struct adv_kernel_key keys[ADV_KERNEL_KEYS])
{
    int count = 0;
    for (int i = 0; i < ADV_KERNEL_ROWS(tile_members); i++) {
        const struct adv_kernel_member *m = &tile_members[i];
        if (!adv_kernel_member_is_written(m, request->kernel)) continue;
        struct adv_kernel_key *key = &keys[count++];
        key->use = "attention";
        (void)snprintf(key->name, sizeof key->name, "sa_%s", m->name);
        adv_kernel_member_value(m, tile, &key->value, &key->text);
    }
    return count;
}

/* The queries of the shard that was priced, by their places in the sequence: the last shard's, which sees the
 * most keys, or an early and a late half, which see the mean. */
static void write_places(struct adv_text *text, const struct adv_attention_shape *s)
{
    if (s->context_shards <= 1 || !s->causal || s->context_ring) return;
    if (s->context_load_balanced)
        adv_text_append(text, "HALF = Q_LEN // 2\n"
                              "mask.q_sequence = np.concatenate((np.arange(HALF), "
                              "np.arange(KV_LEN - Q_LEN + HALF, KV_LEN))).astype(np.int32)\n");
    else
        adv_text_append(text, "mask.q_sequence = np.arange(KV_LEN - Q_LEN, KV_LEN, dtype=np.int32)\n");
}

/* One id for all tokens: ids are compared, and no tile is skipped, as it was priced. */
static void write_segments(struct adv_text *text, const struct adv_attention_shape *s)
{
    if (!s->segment_ids) {
        adv_text_append(text, "IDS = None\n");
        return;
    }
    adv_text_append(text, "IDS = sk.SegmentIds(q=jnp.zeros(Q_LEN, jnp.int32), kv=jnp.zeros(KV_LEN, "
                          "jnp.int32))\n");
}

static void sweep_row(struct adv_text *text, const struct adv_kernel_request *request)
{
    const struct adv_attention_shape *s = &request->attention;
    const bool forward = adv_splash_is_forward(request->kernel);
    const bool fused = request->kernel == ADV_KERNEL_SPLASH_BWD_FUSED;
    adv_text_format(
        text,
        "from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as sk\n"
        "from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as sm\n\n"
        "Q_HEADS, KV_HEADS, Q_LEN, KV_LEN = %d, %d, %lld, %lld\n"
        "q = jnp.ones((%d, Q_HEADS, Q_LEN, %d), jnp.%s)\n"
        "k = jnp.ones((%d, KV_HEADS, KV_LEN, %d), jnp.%s)\n"
        "v = jnp.ones((%d, KV_HEADS, KV_LEN, %d), jnp.%s)\n",
        s->q_heads, s->kv_heads, (long long)s->q_len, (long long)s->kv_len,
        s->batch < 1.0 ? 1 : (int)s->batch, s->head_dim_qk, adv_kernel_jax_dtype(s->dtype),
        s->batch < 1.0 ? 1 : (int)s->batch, s->head_dim_qk, adv_kernel_jax_dtype(s->dtype),
        s->batch < 1.0 ? 1 : (int)s->batch, s->head_dim_v, adv_kernel_jax_dtype(s->dtype));
    if (s->causal && s->window > 0)
        adv_text_format(text, "mask = sm.LocalMask((Q_LEN, KV_LEN), (%lld, 0), 0)\n",
                        (long long)s->window - 1);
    else if (s->causal && s->chunk > 0)
        adv_text_format(text, "mask = sm.ChunkedCausalMask((Q_LEN, KV_LEN), %lld)\n", (long long)s->chunk);
    else
        adv_text_append(text, s->causal ? "mask = sm.CausalMask((Q_LEN, KV_LEN))\n"
                                        : "mask = sm.FullMask((Q_LEN, KV_LEN))\n");
    write_places(text, s);
    write_segments(text, s);
    adv_text_append(text, "REST = dict(");
    if (forward)
        adv_text_append(text, ")\n");
    else /* the forward pass that precedes the gradient keeps one tile */
        adv_text_format(text,
                        "block_q=min(512, Q_LEN), block_kv=min(512, KV_LEN), use_fused_bwd_kernel=%s)\n",
                        fused ? "True" : "False");
    if (request->kernel == ADV_KERNEL_SPLASH_BWD_DQ)
        adv_text_append(text, "REST.update(block_q_dkv=min(512, Q_LEN), block_kv_dkv=min(512, KV_LEN))\n");
    if (request->kernel == ADV_KERNEL_SPLASH_BWD_DKV)
        adv_text_append(text, "REST.update(block_q_dq=min(512, Q_LEN), block_kv_dq=min(512, KV_LEN))\n");
    adv_text_format(
        text,
        "\n\ndef attention(q, k, v, tile):\n"
        "    blocks = {n: sk.QKVLayout[x] if n.endswith(\"layout\") else x for n, x in zip(NAMES, tile)}\n"
        "    kernel = sk.make_splash_mha(sm.MultiHeadMask([mask] * Q_HEADS), head_shards=1, "
        "q_seq_shards=1,\n"
        "                                save_residuals=%s, attn_logits_soft_cap=%s,\n"
        "                                block_sizes=sk.BlockSizes(**REST, **blocks))\n"
        "    return jax.vmap(lambda q, k, v: kernel(q, k, v, IDS))(q, k, v)\n",
        request->kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS ? "True" : "False",
        request->attention_flags.soft_cap ? "50.0" : "None");
    if (forward)
        adv_text_append(text, "\n\nrun, arguments = attention, (q, k, v)\n");
    else
        adv_text_append(text, "\n\ndef gradient(q, k, v, tile):\n"
                              "    loss = lambda *x: attention(*x, tile=tile).astype(jnp.float32).sum()\n"
                              "    return jax.grad(loss, argnums=(0, 1, 2))(q, k, v)\n"
                              "\n\nrun, arguments = gradient, (q, k, v)\n");
}

static int differences_row(const struct adv_kernel_request *request, const char *lines[ADV_SWEEP_DIFFERENCES])
{
    const struct adv_attention_flags *flags = &request->attention_flags;
    int count = 0;
    if (request->attention.context_ring)
        lines[count++] = "a ring is a call for each shard's keys; the program times one call over all keys";
    if (flags->max_logit_constant)
        lines[count++] = "use_max_logit_estimate: the kernel of jax.experimental keeps its running maximum";
    if (flags->dq_reduction_steps > 0)
        lines[count++] = "dq_reduction_steps: the kernel of jax.experimental sums its dQ partials at once";
    return count;
}

const struct adv_kernel_family adv_family_splash = {
    .kernels = splash_kernels,
    .kernels_count = ADV_KERNEL_ROWS(splash_kernels),
    .shape = {shape_members, ADV_KERNEL_ROWS(shape_members)},
    .tile = {tile_members, ADV_KERNEL_ROWS(tile_members)},
    .judge = judge_row,
    .time = time_row,
    .vmem_parts = vmem_row,
    .near = adv_legal_near_block,
    .timeline = adv_splash_timeline,
    .space = "blocks of 1024 to 4096 (256 to 4096 below 1024 tokens) that divide the length, key blocks cut "
             "in 256 to 1024; wide: 128 to 8192, cut in 128 to 2048",
    .tunable = adv_legal_attention_tunable,
    .standard = standard_row,
    .tile_offset = offsetof(struct adv_kernel_tile, attention),
    .tile_bytes = sizeof(struct adv_attention_tile),
    .list_tiles = list_row,
    .short_list = adv_splash_short_list,
    .candidates = adv_splash_candidates,
    .layouts = layouts_row,
    .maxtext_keys = keys_row,
    .sweep = sweep_row,
    .sweep_needs = "",
    .differences = differences_row,
};

static const struct adv_kernel_info xla_kernels[] = {
    {ADV_KERNEL_ATTENTION_XLA, ADV_KERNEL_MEASURED(attention_xla_measured),
     "XLA's own attention (dot_product), forward: the baseline of splash_fwd", "splash_fwd"},
    {ADV_KERNEL_ATTENTION_XLA_BWD, ADV_KERNEL_MEASURED(attention_xla_bwd_measured),
     "its backward pass: the baseline of splash_bwd_fused", "splash_bwd_fused"},
};

/* XLA's attention makes every score and hides some behind its masks; its keys are all there at once. */
static void judge_masks(const struct adv_attention_shape *s, adv_err *warnings)
{
    const struct {
        const char *name;
        bool given;
    } masks[] = {{"window", s->window > 0}, {"chunk", s->chunk > 0}, {"segment_ids", s->segment_ids}};
    if (!warnings) return;
    for (int i = 0; i < 3; i++) {
        if (!masks[i].given) continue;
        (void)adv_err_add_rule(
            warnings, ADV_OK, "no-effect", ADV_AT("/shape", masks[i].name),
            "leave it out, or compare with the splash kernels, which skip hidden tiles",
            "XLA's attention makes the scores that %s hides too: the time is the same without",
            masks[i].name);
    }
    if (!s->context_ring) return;
    (void)adv_err_add_rule(warnings, ADV_OK, "not-used", "/shape/context_parallel_strategy", "all_gather",
                           "XLA's attention has no ring: the time is that of all keys at once");
}

static void judge_xla(const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                      adv_err *err, adv_err *warnings)
{
    (void)tile;
    (void)adv_legal_attention(request->kernel, &request->attention, NULL, err, NULL);
    judge_masks(&request->attention, warnings);
}

static adv_code time_xla(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         const struct adv_kernel_tile *tile, struct adv_kernel_time *time, adv_err *err)
{
    (void)tile;
    return adv_attention_xla_time(machine, request->kernel == ADV_KERNEL_ATTENTION_XLA_BWD,
                                  &request->attention, time, err);
}

const struct adv_kernel_family adv_family_attention_xla = {
    .kernels = xla_kernels,
    .kernels_count = ADV_KERNEL_ROWS(xla_kernels),
    .shape = {shape_members, ADV_KERNEL_ROWS(shape_members)},
    .operation = "its own attention",
    .judge = judge_xla,
    .time = time_xla,
};
