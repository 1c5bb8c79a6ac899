/* Bytes as choices: nearly valid kernel requests, so that rules, simulations, tuners and pictures are
 * reached. What is answered adds up, what is tuned can be simulated, and a refusal that names a legal value
 * is right: with those values put in, the request is refused for nothing that still has one. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

struct choices {
    const uint8_t *data;
    size_t left;
};

static unsigned choose(struct choices *choices, size_t count)
{
    if (choices->left == 0) return 0;
    choices->left--;
    return (unsigned)(*choices->data++ % count);
}

#define PICK(choices, list) (list)[choose(choices, sizeof(list) / sizeof((list)[0]))]

static const char *const kernels[] = {"splash_fwd",
                                      "splash_fwd_residuals",
                                      "splash_bwd_fused",
                                      "splash_bwd_dq",
                                      "splash_bwd_dkv",
                                      "gmm",
                                      "tgmm",
                                      "linear_xent",
                                      "linear_xent_bwd",
                                      "matmul",
                                      "splash_fw",
                                      "attention_xla",
                                      "attention_xla_bwd",
                                      "ragged_dot_xla",
                                      "ragged_dot_xla_tgmm"};
static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4", "tpu7"};
static const char *const sizes[] = {"4096",  "8192", "1024", "128",   "256",  "512", "2048", "2880",    "100",
                                    "1000",  "1",    "64",   "1536",  "7168", "0",   "-5",   "1e30",    "1.5",
                                    "\"8\"", "384",  "300",  "65536", "192",  "96",  "3000", "16777216"};
static const char *const small[] = {"8", "1", "4", "2", "16", "3", "0", "100", "-1", "5000", "72"};
static const char *const words[] = {
    "true", "false", "\"bf16\"", "\"fp8\"",  "\"float32\"", "\"zipf\"", "\"worst\"", "\"SEQ_MINOR\"", "2",
    "1",    "3",     "\"odd\"",  "[100,28]", "[0,1,-3]",    "{}",       "0.5",       "65536"};
static const struct {
    const char *object, *name;
    enum { SIZE, SMALL, WORD } kind;
} members[] = {
    {"shape", "q_heads", SMALL},
    {"shape", "kv_heads", SMALL},
    {"shape", "q_len", SIZE},
    {"shape", "kv_len", SIZE},
    {"shape", "head_dim_qk", SIZE},
    {"shape", "head_dim_v", SIZE},
    {"shape", "causal", WORD},
    {"shape", "window", SIZE},
    {"shape", "chunk", SIZE},
    {"shape", "segment_ids", WORD},
    {"shape", "context_shards", SMALL},
    {"shape", "context_load_balanced", WORD},
    {"shape", "batch", WORD},
    {"shape", "dtype", WORD},
    {"shape", "m", SIZE},
    {"shape", "k", SIZE},
    {"shape", "n", SIZE},
    {"shape", "num_groups", SMALL},
    {"shape", "group_sizes", WORD},
    {"shape", "group_distribution", WORD},
    {"shape", "rhs_transposed", WORD},
    {"shape", "version", WORD},
    {"shape", "tokens", SIZE},
    {"shape", "emb_dim", SIZE},
    {"shape", "vocab", SIZE},
    {"tile", "block_q", SIZE},
    {"tile", "block_kv", SIZE},
    {"tile", "block_kv_compute", SIZE},
    {"tile", "block_q_dkv", SIZE},
    {"tile", "block_kv_dkv", SIZE},
    {"tile", "block_kv_dkv_compute", SIZE},
    {"tile", "block_q_dq", SIZE},
    {"tile", "block_kv_dq", SIZE},
    {"tile", "q_layout", WORD},
    {"tile", "tile_m", SIZE},
    {"tile", "tile_k", SIZE},
    {"tile", "tile_n", SIZE},
    {"tile", "input_buffer_count", SMALL},
    {"tile", "b_block", SIZE},
    {"tile", "h_block", SIZE},
    {"tile", "v_block", SIZE},
    {"flags", "dq_reduction_steps", SMALL},
    {"flags", "use_max_logit_estimate", SMALL},
    {"flags", "kernel_only", WORD},
    {"flags", "xla_tpu_scoped_vmem_limit_kib", SIZE},
};
enum { MEMBERS = sizeof members / sizeof *members };

/* The members that a kernel needs, of a legal request. */
static const char *base_of(unsigned kernel, bool with_tile)
{
    if (kernel < 5 || kernel == 10)
        return with_tile
                   ? "{\"shape\":{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":128},\"tile\":{"
                     "\"block_q\":512,\"block_kv\":512,\"block_q_dkv\":512,\"block_kv_dkv\":512,"
                     "\"block_q_dq\":512,\"block_kv_dq\":512}}"
                   : "{\"shape\":{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":128}}";
    if (kernel == 11 || kernel == 12)
        return "{\"shape\":{\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":128}}";
    if (kernel > 12) return "{\"shape\":{\"m\":4096,\"k\":2048,\"n\":1536,\"num_groups\":8}}";
    if (kernel < 7)
        return with_tile ? "{\"shape\":{\"m\":4096,\"k\":2048,\"n\":1536,\"num_groups\":8},\"tile\":{\"tile_"
                           "m\":128,"
                           "\"tile_k\":512,\"tile_n\":512}}"
                         : "{\"shape\":{\"m\":4096,\"k\":2048,\"n\":1536,\"num_groups\":8}}";
    if (kernel < 9)
        return with_tile ? "{\"shape\":{\"tokens\":4096,\"emb_dim\":4096,\"vocab\":128256},\"tile\":{\"b_"
                           "block\":1024,"
                           "\"h_block\":512,\"v_block\":2048}}"
                         : "{\"shape\":{\"tokens\":4096,\"emb_dim\":4096,\"vocab\":128256}}";
    return with_tile ? "{\"shape\":{\"m\":4096,\"k\":4096,\"n\":4096},\"tile\":{}}"
                     : "{\"shape\":{\"m\":4096,\"k\":4096,\"n\":4096}}";
}

static json_t *make_request(struct choices *choices, bool with_tile)
{
    const unsigned kernel = choose(choices, sizeof kernels / sizeof *kernels);
    json_t *root = json_loads(base_of(kernel, with_tile), 0, NULL);
    FUZZ_PROMISE(root);
    (void)json_object_set_new(root, "kernel", json_string(kernels[kernel]));
    (void)json_object_set_new(root, "chip", json_string(PICK(choices, chips)));
    if (with_tile && choose(choices, 4) == 0) (void)json_object_set_new(root, "timeline", json_true());
    if (!with_tile && choose(choices, 4) == 0) (void)json_object_set_new(root, "wide", json_true());
    for (int changes = 0; changes < 8 && choices->left > 1; changes++) {
        const unsigned at = choose(choices, MEMBERS);
        const char *value = members[at].kind == SIZE    ? PICK(choices, sizes)
                            : members[at].kind == SMALL ? PICK(choices, small)
                                                        : PICK(choices, words);
        if (!with_tile && strcmp(members[at].object, "tile") == 0) continue;
        json_t *object = json_object_get(root, members[at].object);
        if (!object) (void)json_object_set_new(root, members[at].object, object = json_object());
        (void)json_object_set_new(object, members[at].name, json_loads(value, JSON_DECODE_ANY, NULL));
    }
    return root;
}

static double sum_of(const json_t *list, const char *member)
{
    double sum = 0.0;
    for (size_t i = 0; i < json_array_size(list); i++)
        sum += json_number_value(json_object_get(json_array_get(list, i), member));
    return sum;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-9;
}

static void check_simulation(const json_t *root)
{
    const double time_us = json_number_value(json_object_get(root, "time_us"));
    FUZZ_PROMISE(isfinite(time_us) && time_us > 0.0);
    FUZZ_PROMISE(near(sum_of(json_object_get(root, "parts"), "us"), time_us));
    const json_t *buffers = json_object_get(root, "vmem_parts");
    if (json_array_size(buffers) > 0)
        FUZZ_PROMISE(near(sum_of(buffers, "bytes"), json_number_value(json_object_get(root, "vmem_bytes"))));
}

/* The answer, or NULL with the findings in `err`. */
static json_t *ask(enum adv_request_kind kind, const json_t *request, adv_err *err)
{
    struct adv_answer answer;
    char *text = json_dumps(request, 0);
    memset(&answer, 0, sizeof answer);
    adv_err_init(err);
    const adv_code code = adv_answer_request(fuzz_catalog(), kind, text, strlen(text), &answer, err);
    json_t *root = code == ADV_OK ? json_loads(answer.json, 0, NULL) : NULL;
    FUZZ_PROMISE((code == ADV_OK) == (root != NULL) && (code == ADV_OK) == (err->count == 0));
    free(text);
    if (code == ADV_OK) adv_answer_free(&answer);
    return root;
}

/* Puts the first value of a finding's hint where the finding points. False: the hint names none. */
static bool mend(json_t *request, const struct adv_finding *finding)
{
    char object[16], member[64], *end;
    const double value = strtod(finding->hint, &end);
    if (end == finding->hint || sscanf(finding->pointer, "/%15[a-z]/%63[a-z_]", object, member) != 2)
        return false;
    if (strstr(finding->pointer, "group_sizes")) return false; /* one of its numbers says what m would be */
    json_t *into = json_object_get(request, object);
    if (!json_is_object(into)) return false;
    (void)json_object_set_new(into, member, json_integer((json_int_t)value));
    return true;
}

static void check_refusal(enum adv_request_kind kind, json_t *request, adv_err *err)
{
    for (int i = 0; i < err->count; i++) {
        const bool judged = err->findings[i].code == ADV_E_ILLEGAL || err->findings[i].code == ADV_E_RANGE;
        FUZZ_PROMISE(!judged || err->findings[i].hint[0] != '\0');
        for (int j = 0; j < i; j++)
            FUZZ_PROMISE(strcmp(err->findings[i].pointer, err->findings[j].pointer) != 0 ||
                         strcmp(err->findings[i].detail, err->findings[j].detail) != 0);
    }
    enum { ROUNDS = 6 };
    for (int round = 0; round < ROUNDS; round++) {
        bool mended = false;
        for (int i = 0; i < err->count; i++) mended |= mend(request, &err->findings[i]);
        if (!mended) return;
        json_t *root = ask(kind, request, err);
        json_decref(root);
        if (root) return;
    }
    const bool hints_end_in_a_legal_request = false;
    FUZZ_PROMISE(hints_end_in_a_legal_request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = {data, size};
    const bool with_tile = choose(&choices, 4) != 0;
    const enum adv_request_kind kind = with_tile ? ADV_REQUEST_SIMULATE : ADV_REQUEST_TUNE;
    json_t *request = make_request(&choices, with_tile);
    adv_err err;
    json_t *root = ask(kind, request, &err);
    if (!root) {
        check_refusal(kind, request, &err);
    } else if (with_tile) {
        check_simulation(root);
    } else {
        const json_t *best = json_array_get(json_object_get(root, "ranked"), 0);
        FUZZ_PROMISE(best);
        (void)json_object_del(request, "wide");
        (void)json_object_set(request, "tile", json_object_get(best, "tile"));
        json_t *simulated = ask(ADV_REQUEST_SIMULATE, request, &err);
        FUZZ_PROMISE(simulated);
        check_simulation(simulated);
        FUZZ_PROMISE(near(json_number_value(json_object_get(simulated, "time_us")),
                          json_number_value(json_object_get(best, "time_us"))));
        json_decref(simulated);
    }
    json_decref(root);
    json_decref(request);
    return 0;
}
