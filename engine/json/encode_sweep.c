/* encode_sweep.c: the short list of a tuning as a sweep that runs on a chip: a Python program for tune-jax.
 */
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/encode_kernel.h"
#include "engine/kernel/gmm_visits.h"

static const char *jax_dtype(enum adv_format format)
{
    if (format == ADV_FORMAT_F32) return "float32";
    if (format == ADV_FORMAT_FP8) return "float8_e4m3fn";
    return format == ADV_FORMAT_INT8 ? "int8" : "bfloat16";
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

static void write_splash(struct adv_text *text, const struct adv_kernel_request *request)
{
    const struct adv_attention_shape *s = &request->attention;
    const bool forward =
        request->kernel == ADV_KERNEL_SPLASH_FWD || request->kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS;
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
        s->batch < 1.0 ? 1 : (int)s->batch, s->head_dim_qk, jax_dtype(s->dtype),
        s->batch < 1.0 ? 1 : (int)s->batch, s->head_dim_qk, jax_dtype(s->dtype),
        s->batch < 1.0 ? 1 : (int)s->batch, s->head_dim_v, jax_dtype(s->dtype));
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

/* Tokamax's kernel is the one that MaxText runs and the one with a number of buffers; it and the older one of
 * jax.experimental name the format of the result differently. */
static void write_gmm_backend(struct adv_text *text, const struct adv_gmm_shape *s)
{
    adv_text_format(
        text,
        "try:\n"
        "    from tokamax._src.ops.ragged_dot import pallas_mosaic_tpu_kernel as backend\n\n"
        "    HAS_BUFFERS = True\n"
        "    REST = dict(precision=jax.lax.Precision.DEFAULT, out_dtype=jnp.%s)\n"
        "except ImportError:  # two buffers: tiles that differ in their number alone time alike\n"
        "    import importlib\n\n"
        "    backend = importlib.import_module(\"jax.experimental.pallas.ops.tpu.megablox.gmm\")\n"
        "    HAS_BUFFERS = False\n"
        "    REST = dict(preferred_element_type=jnp.%s)\n\n",
        jax_dtype(s->out), jax_dtype(s->out));
}

static void write_gmm(struct adv_text *text, const struct adv_kernel_request *request)
{
    const struct adv_gmm_shape *s = &request->gmm;
    const bool tgmm = request->kernel == ADV_KERNEL_TGMM;
    write_gmm_backend(text, s);
    adv_text_format(text, "M, K, N, GROUPS = %lld, %lld, %lld, %d\n", (long long)s->m, (long long)s->k,
                    (long long)s->n, s->num_groups);
    int64_t sizes[ADV_LIMIT_GROUPS];
    if (adv_gmm_sizes(s, sizes)) {
        adv_text_append(text, "sizes = jnp.array([");
        for (int g = 0; g < s->num_groups; g++)
            adv_text_format(text, "%s%lld", g ? ", " : "", (long long)sizes[g]);
        adv_text_append(text, "], jnp.int32)\n");
    } else {
        adv_text_append(text, "rows = jax.random.randint(jax.random.key(0), (M,), 0, GROUPS)\n"
                              "sizes = jnp.bincount(rows, length=GROUPS).astype(jnp.int32)\n");
    }
    if (tgmm)
        adv_text_format(text, "lhs = jnp.ones((K, M), jnp.%s)\nrhs = jnp.ones((M, N), jnp.%s)\n",
                        jax_dtype(s->lhs), jax_dtype(s->rhs));
    else
        adv_text_format(text, "lhs = jnp.ones((M, K), jnp.%s)\nrhs = jnp.ones((GROUPS, %s), jnp.%s)\n",
                        jax_dtype(s->lhs), s->rhs_transposed ? "N, K" : "K, N", jax_dtype(s->rhs));
    adv_text_format(text,
                    "\n\ndef run(lhs, rhs, sizes, tile):\n"
                    "    buffers = dict(input_buffer_count=tile[3]) if HAS_BUFFERS else {}\n"
                    "    return backend.%s(lhs, rhs, sizes, tiling=tile[:3]%s, **REST, **buffers)\n"
                    "\n\narguments = (lhs, rhs, sizes)\n",
                    tgmm ? "tgmm" : "gmm", !tgmm && s->rhs_transposed ? ", transpose_rhs=True" : "");
}

/* The two passes of tokamax's loss by themselves; backward takes the log-sum-exp that forward leaves. */
static void write_xent(struct adv_text *text, const struct adv_kernel_request *request)
{
    const struct adv_xent_shape *s = &request->xent;
    const bool backward = request->kernel == ADV_KERNEL_LINEAR_XENT_BWD;
    const char *operands = backward ? "dout, lse, x, labels, w" : "x, labels, w";
    adv_text_format(text,
                    "from tokamax._src.ops.linear_softmax_cross_entropy_loss import pallas_mosaic_tpu_kernel "
                    "as backend\n\n"
                    "TOKENS, EMB_DIM, VOCAB = %lld, %lld, %lld\n"
                    "x = jnp.ones((TOKENS, EMB_DIM), jnp.bfloat16)\n"
                    "w = jnp.ones((EMB_DIM, VOCAB), jnp.bfloat16)\n"
                    "labels = jax.random.randint(jax.random.key(0), (TOKENS,), 0, VOCAB)\n",
                    (long long)s->tokens, (long long)s->emb_dim, (long long)s->vocab);
    if (backward)
        adv_text_append(text, "dout = jnp.ones((), jnp.float32)\n"
                              "lse = jnp.full((TOKENS,), np.log(VOCAB) + EMB_DIM, jnp.float32)\n");
    adv_text_format(
        text,
        "\n\ndef run(%s, tile):\n"
        "    blocks = {name + \"_size\": size for name, size in zip(NAMES, tile)}\n"
        "    return backend.linear_softmax_cross_entropy_loss_%s_pallas_mosaic_tpu(%s, **blocks)\n"
        "\n\narguments = (%s)\n",
        operands, backward ? "bwd" : "fwd", operands, operands);
}

/* One row of TILES: values in the order of NAMES, the predicted time beside them. */
static void write_tile(struct adv_text *text, json_t *tiles, enum adv_kernel kernel,
                       const struct adv_kernel_choice *choice)
{
    json_t *tile = adv_encode_tile(kernel, choice), *value;
    const char *name;
    int count = 0;
    adv_text_append(text, "    (");
    json_object_foreach(tile, name, value)
    {
        if (count++) adv_text_append(text, ", ");
        if (json_is_string(value))
            adv_text_format(text, "\"%s\"", json_string_value(value));
        else
            adv_text_format(text, "%lld", (long long)json_integer_value(value));
    }
    adv_text_format(text, "),  # predicted %.1f us\n", choice->time.time_s * 1e6);
    (void)json_array_append_new(tiles, tile);
}

static void write_tiles(struct adv_text *text, json_t *tiles, const struct adv_kernel_request *request,
                        const struct adv_kernel_tuning *tuning)
{
    json_t *first = adv_encode_tile(request->kernel, &tuning->short_list[0].best), *value;
    const char *name;
    int count = 0;
    adv_text_append(text, "NAMES = (");
    json_object_foreach(first, name, value) adv_text_format(text, "%s\"%s\"", count++ ? ", " : "", name);
    json_decref(first);
    adv_text_append(text, ")\nTILES = [\n");
    for (int i = 0; i < tuning->short_list_count; i++) {
        const struct adv_kernel_listed *listed = &tuning->short_list[i];
        write_tile(text, tiles, request->kernel, &listed->best);
        for (int k = 0; k < listed->others_count; k++)
            write_tile(text, tiles, request->kernel, &listed->others[k]);
    }
    adv_text_append(text, "]\n");
}

int adv_sweep_differences(const struct adv_kernel_request *request, const char *lines[ADV_SWEEP_DIFFERENCES])
{
    const bool attention = adv_kernel_is_attention(request->kernel);
    const struct adv_attention_flags *flags = &request->attention_flags;
    const struct {
        bool holds;
        const char *line;
    } all[ADV_SWEEP_DIFFERENCES] = {
        {attention && request->attention.context_ring,
         "a ring is a call for each shard's keys; the program times one call over all keys"},
        {attention && flags->max_logit_constant,
         "use_max_logit_estimate: the kernel of jax.experimental keeps its running maximum"},
        {attention && flags->dq_reduction_steps > 0,
         "dq_reduction_steps: the kernel of jax.experimental sums its dQ partials at once"},
        {adv_kernel_is_gmm(request->kernel) && request->gmm.return_residuals,
         "return_residuals: the program times the kernel without the copy of its result"},
    };
    int count = 0;
    for (int i = 0; i < ADV_SWEEP_DIFFERENCES; i++)
        if (all[i].holds) lines[count++] = all[i].line;
    return count;
}

json_t *adv_encode_sweep(const struct adv_kernel_request *request, const struct adv_kernel_tuning *tuning)
{
    const bool attention = adv_kernel_is_attention(request->kernel);
    if (tuning->short_list_count == 0) return json_null();
    json_t *tiles = json_array();
    struct adv_text text;
    adv_text_init(&text, ADV_LIMIT_BODY_BYTES);
    adv_text_format(&text, "# Times the short list of %s on a %s. Needs: pip install tune-jax%s\n",
                    adv_kernel_name(request->kernel), request->chip->chip.name, attention ? "" : " tokamax");
    if (request->scoped_vmem_limit_bytes > 0.0)
        adv_text_format(&text, "# Run with LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=%.0f\n",
                        request->scoped_vmem_limit_bytes / 1024.0);
    const char *lines[ADV_SWEEP_DIFFERENCES];
    const int differences = adv_sweep_differences(request, lines);
    for (int i = 0; i < differences; i++) adv_text_format(&text, "# Not as tuned: %s\n", lines[i]);
    adv_text_append(&text, "import jax\nimport jax.numpy as jnp\nimport numpy as np\nimport tune_jax\n");
    if (attention)
        write_splash(&text, request);
    else if (adv_kernel_is_gmm(request->kernel))
        write_gmm(&text, request);
    else
        write_xent(&text, request);
    write_tiles(&text, tiles, request, tuning);
    adv_text_append(&text, "tune_jax.tune_logger.setLevel(\"INFO\")\n"
                           "tuned = tune_jax.tune(run, hyperparams={\"tile\": TILES})\n"
                           "jax.block_until_ready(tuned(*arguments))\n"
                           "print(tuned.optimal_hyperparams)\n");
    json_t *sweep = json_object();
    (void)json_object_set_new(sweep, "tiles", tiles);
    (void)json_object_set_new(sweep, "tune_jax", text.data ? json_string(text.data) : json_null());
    adv_text_free(&text);
    return sweep;
}
