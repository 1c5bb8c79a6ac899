/* A search shares the request's memory with the telling of its answer; too little of it is no reason to fail.
 */
#include "tests/unit/advise_fixture.h"

#include <string.h>

#include "engine/answer/room.h"
#include "tests/unit/answer_fixture.h"

#define MACHINE  "{\"chip\":\"tpu7x\",\"topology\":\"16x16x16\",\"slices\":8}"
#define WORKLOAD "{\"seq_len\":8192,\"global_batch_sequences\":4194304,\"quantization\":\"any\"}"
#define LARGE    "\"model\":\"qwen3-235b-a22b\",\"workload\":" WORKLOAD
#define SMALL                                                                                                \
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x8\"},"                      \
    "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":64},\"search\":{\"top_k\":2}}"

static adv_code search(struct fixture *fixture, size_t left_bytes, struct adv_search_result *result)
{
    fixture_open(fixture, SMALL);
    fixture->arena.limit_bytes = fixture->arena.used_bytes + left_bytes;
    return adv_room_search(fixture->request, NULL, fixture->constants, &fixture->arena, result,
                           &fixture->err);
}

/* With less and less memory: first the whole space, then parts of it, then none; never "try again". */
static void a_space_beyond_the_memory_is_searched_in_part(void **state)
{
    (void)state;
    static struct fixture whole_fixture, fixture;
    struct adv_search_result whole, part;
    int parts = 0, refusals = 0;
    assert_int_equal(search(&whole_fixture, ADV_LIMIT_ARENA_BYTES, &whole), ADV_OK);
    assert_true(whole.exhaustive && whole.left_out == 0 && whole.found_count > 0);
    adv_room_warn(whole_fixture.request, &whole, &whole_fixture.warnings);
    assert_int_equal(whole_fixture.warnings.count, 0);
    for (size_t left_bytes = 16u << 20; left_bytes > 1u << 16; left_bytes -= left_bytes / 32) {
        const adv_code code = search(&fixture, left_bytes, &part);
        assert_true(fixture.arena.used_bytes <= fixture.arena.limit_bytes);
        if (code == ADV_E_REQUEST_MEMORY) {
            assert_int_equal(adv_code_http_status(code), 422);
            assert_string_equal(adv_code_slug(code), "request-memory");
            assert_int_equal(fixture.err.count, 1);
            assert_non_null(strstr(fixture.err.findings[0].hint, "search.axes"));
            refusals++;
        } else {
            assert_int_equal(code, ADV_OK);
            assert_int_equal(refusals, 0);
            assert_int_equal(part.considered, whole.considered);
            assert_int_equal(part.illegal, whole.illegal);
            assert_int_equal(part.exhaustive, part.left_out == 0);
            assert_true(part.considered >= part.illegal + part.pruned + part.out_of_memory + part.left_out);
            adv_room_warn(fixture.request, &part, &fixture.warnings);
            assert_int_equal(fixture.warnings.count, part.left_out > 0);
            parts += part.left_out > 0 && part.found_count > 0;
        }
        fixture_close(&fixture);
    }
    assert_true(parts > 2 && refusals > 2);
    fixture_close(&whole_fixture);
}

/* The system without memory is another thing: asked again, it may have some. */
static void only_the_cap_of_a_request_is_its_own_fault(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_err err = adv_err_empty();
    adv_arena_init(&arena, 1000);
    assert_int_equal(adv_room_judge(ADV_E_MEMORY, &arena, &err), ADV_E_MEMORY);
    assert_non_null(adv_arena_alloc(&arena, 900));
    assert_null(adv_arena_alloc(&arena, 900));
    assert_int_equal(adv_room_judge(ADV_OK, &arena, &err), ADV_OK);
    assert_int_equal(adv_room_judge(ADV_E_RANGE, &arena, &err), ADV_E_RANGE);
    assert_int_equal(err.count, 0);
    assert_int_equal(adv_room_judge(ADV_E_MEMORY, &arena, &err), ADV_E_REQUEST_MEMORY);
    assert_int_equal(err.count, 1);
    adv_arena_free(&arena);
}

/* What may be told of a hundred plans keeps its room beside a space that is too large. */
static void many_plans_of_a_part_are_told(void **state)
{
    (void)state;
    json_t *root = answer_to(ADV_REQUEST_ADVISE, "{" LARGE ",\"cluster\":" MACHINE
                                                 ",\"include\":[\"trade_off\"],\"search\":{\"top_k\":100,"
                                                 "\"max_evaluations\":60000,\"sensitivities\":true}}");
    const json_t *found = json_object_get(root, "search");
    assert_true(json_array_size(json_object_get(root, "ranked")) > 20);
    assert_true(json_is_false(json_object_get(found, "exhaustive")));
    assert_true(json_integer_value(json_object_get(found, "left_out")) > 0);
    const json_t *warning = json_array_get(json_object_get(root, "warnings"), 0);
    assert_string_equal(json_string_value(json_object_get(warning, "code")), "space-too-large");
    json_decref(root);
}

/* Where machines are compared, the warning is of them and of the best one. Einsums of experts have more
 * meshes than grouped matmuls. */
static void machines_searched_in_part_are_counted(void **state)
{
    (void)state;
    json_t *root =
        answer_to(ADV_REQUEST_ADVISE, "{" LARGE ",\"pins\":{\"sparse_matmul\":false},\"clusters\":[" MACHINE
                                      ",{\"chip\":\"v6e\",\"topology\":\"4x4\"}],"
                                      "\"search\":{\"top_k\":1,\"max_evaluations\":300}}");
    static const char *const pointers[] = {"/clusters", "/search"};
    const json_t *warnings = json_object_get(root, "warnings");
    for (size_t i = 0; i < 2; i++) {
        const json_t *warning = json_array_get(warnings, i);
        assert_string_equal(json_string_value(json_object_get(warning, "code")), "space-too-large");
        assert_string_equal(json_string_value(json_object_get(warning, "pointer")), pointers[i]);
    }
    const char *detail = json_string_value(json_object_get(json_array_get(warnings, 0), "detail"));
    assert_ptr_equal(strstr(detail, "on 1 of the machines"), detail);
    json_decref(root);
}

static void the_member_is_left_out_where_nothing_is(void **state)
{
    (void)state;
    json_t *root = answer_to(ADV_REQUEST_ADVISE, SMALL);
    const json_t *found = json_object_get(root, "search");
    assert_true(json_is_true(json_object_get(found, "exhaustive")));
    assert_null(json_object_get(found, "left_out"));
    json_decref(root);
}

static int open_catalog(void **state)
{
    (void)state;
    catalog = fixture_catalog();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_space_beyond_the_memory_is_searched_in_part),
        cmocka_unit_test(only_the_cap_of_a_request_is_its_own_fault),
        cmocka_unit_test(many_plans_of_a_part_are_told),
        cmocka_unit_test(machines_searched_in_part_are_counted),
        cmocka_unit_test(the_member_is_left_out_where_nothing_is),
    };
    return cmocka_run_group_tests(tests, open_catalog, NULL);
}
