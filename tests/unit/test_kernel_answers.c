/* Requests about kernels that somebody gets wrong, or means differently: each has an answer that helps. */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "tests/unit/catalog_fixture.h"

#define GROUPED "\"m\":4096,\"k\":7168,\"n\":2048,\"num_groups\":16"
#define SHARDED                                                                                              \
    "\"batch\":2,\"q_heads\":16,\"kv_heads\":4,\"q_len\":2048,\"head_dim_qk\":128,\"context_shards\":4"
#define ATTENTION "\"q_heads\":8,\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":128"
#define TILE      "\"tile\":{\"tile_m\":256,\"tile_k\":1024,\"tile_n\":1024}"

/* Texts that must be in the answer (or in the problem document, for a refused request) and what must not;
 * `holds` alone is never NULL. */
static const struct {
    enum adv_request_kind kind;
    const char *request;
    bool refused;
    const char *holds, *also, *lacks;
} cases[] = {
    {ADV_REQUEST_SIMULATE, "{\"chip\":\"v6e\",\"kernel\":\"tgmm\",\"shape\":{" GROUPED ",\"version\":2}}",
     true, "/shape/version", "\"hint\":\"version 1\"", "/tile"},
    {ADV_REQUEST_TUNE, "{\"chip\":\"v6e\",\"kernel\":\"tgmm\",\"shape\":{" GROUPED ",\"version\":2}}", true,
     "/shape/version", "\"hint\":\"version 1\"", "simulate it instead"},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"tgmm\",\"shape\":{" GROUPED ",\"rhs_transposed\":true}," TILE "}", false,
     "/shape/rhs_transposed", "not-used", NULL},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"tgmm\",\"shape\":{" GROUPED ",\"return_residuals\":true}," TILE "}",
     false, "/shape/return_residuals", "not-used", "residual_copy"},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{" GROUPED ",\"return_residuals\":true}," TILE "}",
     false, "residual_copy", "\"warnings\":[]", NULL},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"splash_fwd\",\"shape\":{" ATTENTION "},"
     "\"tile\":{\"block_q\":512,\"block_kv\":512,\"block_kv_dkv\":777}}",
     false, "\"pointer\":\"/tile/block_kv_dkv\"", "of another pass", "/tile/block_q"},
    {ADV_REQUEST_TUNE,
     "{\"chip\":\"v6e\",\"kernel\":\"splash_fwd\",\"shape\":{" SHARDED ",\"segment_ids\":true},"
     "\"flags\":{\"attn_logits_soft_cap\":30,\"use_max_logit_estimate\":8}}",
     false, "q_sequence = np.arange(KV_LEN - Q_LEN, KV_LEN", "attn_logits_soft_cap=50.0",
     "attn_logits_soft_cap=None"},
    {ADV_REQUEST_TUNE,
     "{\"chip\":\"v6e\",\"kernel\":\"splash_fwd\",\"shape\":{" SHARDED
     ",\"segment_ids\":true,\"context_parallel_load_balance\":true}}",
     false, "np.arange(HALF)", "sk.SegmentIds(", "IDS = None"},
    {ADV_REQUEST_TUNE,
     "{\"chip\":\"v6e\",\"kernel\":\"splash_fwd\",\"shape\":{" SHARDED
     ",\"context_parallel_strategy\":\"ring\"}}",
     false, "# Not as tuned: a ring", "the sweep is not as tuned: a ring", "q_sequence"},
    {ADV_REQUEST_TUNE,
     "{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{\"m\":4096,\"k\":1024,\"n\":1024,\"num_groups\":4,"
     "\"group_distribution\":\"balanced\"}}",
     false, "sizes = jnp.array([1024, 1024, 1024, 1024]", "input_buffer_count=tile[3]", "random"},
    {ADV_REQUEST_TUNE,
     "{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{" GROUPED ",\"return_residuals\":true}}", false,
     "# Not as tuned: return_residuals", "out_dtype=jnp.bfloat16", NULL},
    {ADV_REQUEST_TUNE,
     "{\"chip\":\"v6e\",\"kernel\":\"linear_xent\",\"shape\":{\"tokens\":8192,\"emb_dim\":4096,"
     "\"vocab\":32768}}",
     false, "linear_softmax_cross_entropy_loss_fwd_pallas_mosaic_tpu(x, labels, w, **blocks)",
     "TOKENS, EMB_DIM, VOCAB = 8192, 4096, 32768", "dout"},
    {ADV_REQUEST_TUNE,
     "{\"chip\":\"v6e\",\"kernel\":\"linear_xent_bwd\",\"shape\":{\"tokens\":8192,\"emb_dim\":4096,"
     "\"vocab\":32768}}",
     false, "linear_softmax_cross_entropy_loss_bwd_pallas_mosaic_tpu(dout, lse, x, labels, w, **blocks)",
     "arguments = (dout, lse, x, labels, w)", "not as tuned"},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"attention_xla\",\"shape\":{" ATTENTION "},\"tile\":{\"block_q\":512}}",
     true, "\"pointer\":\"/tile\"", "attention_xla takes no tile", "unknown member"},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"ragged_dot_xla\",\"shape\":{" GROUPED "}," TILE "}", true,
     "\"pointer\":\"/tile\"", "leave it out, or gmm", "unknown member"},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"ragged_dot_xla\",\"shape\":{" GROUPED ",\"version\":1}}", true,
     "/shape/version", "unknown member", NULL},
    {ADV_REQUEST_TUNE, "{\"chip\":\"v6e\",\"kernel\":\"attention_xla\",\"shape\":{" ATTENTION "}}", true,
     "nothing to tune", "compare with splash_fwd", "/tile"},
    {ADV_REQUEST_TUNE, "{\"chip\":\"v6e\",\"kernel\":\"ragged_dot_xla_tgmm\",\"shape\":{" GROUPED "}}", true,
     "nothing to tune", "compare with tgmm", "/tile"},
    {ADV_REQUEST_TUNE, "{\"chip\":\"v6e\",\"kernel\":\"matmul\",\"shape\":{\"m\":512,\"k\":512,\"n\":512}}",
     true, "nothing to tune", "\"hint\":\"simulate it instead\"", "compare"},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"attention_xla\",\"shape\":{" ATTENTION ",\"window\":1024}}", false,
     "/shape/window", "no-effect", "segment_ids"},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"attention_xla\",\"shape\":{" SHARDED
     ",\"context_parallel_strategy\":\"ring\"}}",
     false, "has no ring", "not-used", NULL},
    {ADV_REQUEST_SIMULATE,
     "{\"chip\":\"v6e\",\"kernel\":\"ragged_dot_xla_tgmm\",\"shape\":{" GROUPED
     ",\"rhs_transposed\":true},\"tile\":{}}",
     false, "/shape/rhs_transposed", "ragged_dot_xla_tgmm does not use it", NULL},
    {ADV_REQUEST_SIMULATE, "{\"chip\":\"v6e\",\"kernel\":\"attention_xla_bwd\",\"shape\":{" ATTENTION "}}",
     false, "\"extrapolated\":true", "\"scoped_vmem_limit_needed_kib\":null", "head_dim"},
    {ADV_REQUEST_SIMULATE, "{\"chip\":\"tpu7x\",\"kernel\":\"attention_xla_bwd\",\"shape\":{" ATTENTION "}}",
     false, "\"extrapolated\":false", "\"maxtext_keys\":null", NULL},
};

static void every_kernel_request_has_an_answer_that_helps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adv_answer answer;
        adv_err err;
        adv_err_init(&err);
        const adv_code code = adv_answer_request(catalog, cases[i].kind, cases[i].request,
                                                 strlen(cases[i].request), &answer, &err);
        char *text = code == ADV_OK ? answer.json : adv_problem_json(&err, NULL);
        assert_non_null(text);
        if ((code != ADV_OK) != cases[i].refused) fail_msg("%s: code %d\n%s", cases[i].request, code, text);
        if (!strstr(text, cases[i].holds) || (cases[i].also && !strstr(text, cases[i].also)) ||
            (cases[i].lacks && strstr(text, cases[i].lacks)))
            fail_msg("%s\nlacks \"%s\" or \"%s\", or has \"%s\":\n%.3000s", cases[i].request, cases[i].holds,
                     cases[i].also ? cases[i].also : "", cases[i].lacks ? cases[i].lacks : "", text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_request_has_an_answer_that_helps),
    };
    return run_group_with_catalog(tests);
}
