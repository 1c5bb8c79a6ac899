/* A tile size that is refused comes with the nearest value that the shape allows: what the hint names is
 * taken, and nothing nearer is. */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "engine/advise.h"
#include "tests/unit/catalog_fixture.h"

struct kernel_case {
    const char *kernel, *shape;
    const char *members[3];
    long lengths[3]; /* that the member cuts; 0: another block */
};

static const struct kernel_case cases[] = {
    {"splash_fwd",
     "{\"q_heads\":4,\"kv_heads\":2,\"q_len\":3840,\"kv_len\":4608,\"head_dim_qk\":128}",
     {"block_q", "block_kv", "block_kv_compute"},
     {3840, 4608, 0}},
    {"splash_bwd_fused",
     "{\"q_heads\":4,\"kv_heads\":2,\"q_len\":4096,\"head_dim_qk\":64}",
     {"block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute"},
     {4096, 4096, 0}},
    {"splash_bwd_dq",
     "{\"q_heads\":4,\"kv_heads\":2,\"q_len\":100,\"kv_len\":1024,\"head_dim_qk\":64}",
     {"block_q_dq", "block_kv_dq"},
     {100, 1024}},
    {"splash_fwd_residuals",
     "{\"q_heads\":4,\"kv_heads\":2,\"q_len\":1536,\"context_shards\":4,\"context_parallel_strategy\":"
     "\"ring\","
     "\"head_dim_qk\":64}",
     {"block_q", "block_kv"},
     {1536, 1536}},
    {"gmm",
     "{\"m\":12288,\"k\":2048,\"n\":1408,\"num_groups\":8}",
     {"tile_m", "tile_k", "tile_n"},
     {12288, 2048, 1408}},
    {"gmm",
     "{\"m\":12288,\"k\":320,\"n\":100,\"num_groups\":8,\"dtype\":\"int8\"}",
     {"tile_m", "tile_k", "tile_n"},
     {12288, 320, 100}},
    {"tgmm",
     "{\"m\":1000,\"k\":100000,\"n\":128,\"num_groups\":8,\"dtype\":\"float32\"}",
     {"tile_m", "tile_k", "tile_n"},
     {1000, 100000, 128}},
    {"linear_xent",
     "{\"tokens\":5120,\"emb_dim\":2880,\"vocab\":128256}",
     {"b_block", "h_block", "v_block"},
     {5120, 2880, 128256}},
    {"linear_xent_bwd",
     "{\"tokens\":200,\"emb_dim\":64,\"vocab\":1000}",
     {"b_block_size", "h_block_size", "v_block_size"},
     {200, 64, 1000}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The findings of a simulation with one member set, and the rest of the tile legal where it can be. */
static void ask(const struct kernel_case *row, int member, json_t *value, adv_err *err)
{
    json_t *tile = json_object();
    for (int i = 0; i < 3 && row->members[i]; i++) {
        const long length = row->lengths[i];
        const long legal = length % 128 && length < 65536 ? length : length && length % 768 == 0 ? 768 : 128;
        (void)json_object_set_new(tile, row->members[i], json_integer(legal));
    }
    (void)json_object_set_new(tile, row->members[member], value);
    json_t *request = json_pack("{s:s,s:s,s:o,s:o}", "chip", "v6e", "kernel", row->kernel, "shape",
                                json_loads(row->shape, 0, NULL), "tile", tile);
    char *text = json_dumps(request, JSON_COMPACT);
    struct adv_answer answer;
    adv_err_init(err);
    if (adv_answer_request(catalog, ADV_REQUEST_SIMULATE, text, strlen(text), &answer, err) == ADV_OK)
        adv_answer_free(&answer);
    free(text);
    json_decref(request);
}

/* Findings about the member itself. */
static const struct adv_finding *finding_of(const adv_err *err, const char *member)
{
    char pointer[64];
    (void)snprintf(pointer, sizeof pointer, "/tile/%s", member);
    for (int i = 0; i < err->count; i++)
        if (strcmp(err->findings[i].pointer, pointer) == 0) return &err->findings[i];
    return NULL;
}

static bool is_taken(const struct kernel_case *row, int member, long value)
{
    static adv_err err;
    ask(row, member, json_integer(value), &err);
    return err.count == 0;
}

static void check_value(const struct kernel_case *row, int member, json_t *value, long wanted)
{
    static adv_err err;
    const char *name = row->members[member];
    ask(row, member, json_incref(value), &err);
    const struct adv_finding *finding = finding_of(&err, name);
    char *shown = json_dumps(value, JSON_ENCODE_ANY);
    if (err.count != 1) fail_msg("%s %s %s: %d findings", row->kernel, name, shown, err.count);
    assert_non_null(finding);
    if (!finding) return;
    char *end = NULL;
    long named[2] = {strtol(finding->hint, &end, 10), 0};
    if (end == finding->hint)
        fail_msg("%s %s %s: the hint names no value: %s", row->kernel, name, shown, finding->hint);
    if (strncmp(end, " or ", 4) == 0) named[1] = strtol(end + 4, NULL, 10);
    long nearest = labs(wanted - named[0]);
    for (int i = 0; i < 2 && named[i]; i++) {
        if (!is_taken(row, member, named[i]))
            fail_msg("%s %s %s: %ld is refused as well (%s)", row->kernel, name, shown, named[i],
                     finding->hint);
        if (labs(wanted - named[i]) < nearest) nearest = labs(wanted - named[i]);
    }
    const long length = row->lengths[member];
    for (long away = 0; away < nearest && away < 400 && wanted < length; away++)
        for (long value_there = wanted - away; value_there <= wanted + away; value_there += 2 * away + !away)
            if (value_there > 0 && value_there <= length && is_taken(row, member, value_there))
                fail_msg("%s %s %s: %ld is nearer than %s", row->kernel, name, shown, value_there,
                         finding->hint);
    free(shown);
    json_decref(value);
}

static void a_refused_tile_size_names_the_nearest_that_is_taken(void **state)
{
    (void)state;
    static const long wanted[] = {0, -7, 1, 99, 1000, 70001, 99999999};
    for (int c = 0; c < CASES; c++)
        for (int member = 0; member < 3 && cases[c].members[member]; member++)
            for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
                if (!is_taken(&cases[c], member, wanted[i]))
                    check_value(&cases[c], member, json_integer(wanted[i]), wanted[i]);
}

static void so_do_numbers_that_are_not_whole_and_texts(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++)
        for (int member = 0; member < 3 && cases[c].members[member]; member++) {
            check_value(&cases[c], member, json_real(500.5), 500);
            check_value(&cases[c], member, json_real(1e30), 99999999);
            check_value(&cases[c], member, json_string("384"), 384);
            check_value(&cases[c], member, json_string("-1"), -1);
        }
}

/* Without a shape to go by, a value that the member's own rule allows. */
static void an_unreadable_shape_leaves_the_members_own_rule(void **state)
{
    (void)state;
    static const struct kernel_case unknown[] = {
        {"gmm", "{\"m\":\"many\",\"num_groups\":8}", {"tile_m", "tile_k", "tile_n"}, {0}},
        {"splash_fwd", "{\"q_heads\":4}", {"block_q", "block_kv", "block_kv_compute"}, {0}},
        {"linear_xent", "{}", {"b_block", "h_block", "v_block"}, {0}},
        {"no_such_kernel", "{}", {"tile_k", "block_kv", "v_block"}, {0}}};
    for (size_t c = 0; c < sizeof unknown / sizeof *unknown; c++)
        for (int member = 0; member < 3; member++) {
            static adv_err err;
            ask(&unknown[c], member, json_integer(0), &err);
            const struct adv_finding *finding = finding_of(&err, unknown[c].members[member]);
            assert_non_null(finding);
            const long named = finding ? strtol(finding->hint, NULL, 10) : 0;
            assert_true(named == 128 || (named == 16 && finding && strstr(finding->hint, "divides m")));
        }
}

/* A tile of a kernel that takes none, and sizes of a shape that no tile can cut. */
static void hints_of_what_is_not_a_tile_size(void **state)
{
    (void)state;
    static const struct kernel_case others[] = {{"gmm", "[]", {"tile_n"}, {0}},
                                                {"gmm", "{\"m\":128}", {"tile_n"}, {0}},
                                                {"splash_fwd",
                                                 "{\"q_heads\":4,\"kv_heads\":2,\"q_len\":384,"
                                                 "\"kv_len\":1024,\"head_dim_qk\":64,\"context_shards\":3}",
                                                 {"block_q"},
                                                 {0}},
                                                {"matmul", "{\"m\":8,\"k\":8,\"n\":8}", {"tile_m"}, {8}},
                                                {"splash_fwd", "{\"q_len\":0,\"batch\":0}", {"block_q"}, {0}},
                                                {"linear_xent", "{\"emb_dim\":-8}", {"h_block"}, {0}}};
    static const struct {
        const char *pointer, *hint;
    } expected[] = {{"/shape", "an object with at least `m` `k` `n` `num_groups`"},
                    {"/shape/k", "contraction"},
                    {"/shape/q_len", "kv_len 1152"}, /* 1024 keys are no three shards of anything */
                    {"/tile/tile_m", "leave it out"},
                    {"/shape/q_len", "128"},
                    {"/shape/emb_dim", "8"}};
    for (size_t c = 0; c < sizeof others / sizeof *others; c++) {
        static adv_err err;
        ask(&others[c], 0, json_integer(0), &err);
        int found = 0;
        for (int i = 0; i < err.count; i++)
            if (strcmp(err.findings[i].pointer, expected[c].pointer) == 0)
                found += strncmp(err.findings[i].hint, expected[c].hint, strlen(expected[c].hint)) == 0;
        assert_int_equal(found, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_tile_size_names_the_nearest_that_is_taken),
        cmocka_unit_test(so_do_numbers_that_are_not_whole_and_texts),
        cmocka_unit_test(an_unreadable_shape_leaves_the_members_own_rule),
        cmocka_unit_test(hints_of_what_is_not_a_tile_size),
    };
    return run_group_with_catalog(tests);
}
