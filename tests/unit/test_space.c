#include "tests/unit/space_fixture.h"

#include <math.h>
#include <string.h>

#include "engine/search/bounds.h"
#include "engine/search/space_batch.h"
#include "engine/search/space_meshes.h"

static void every_family_uses_all_devices_and_the_whole_batch_once(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    build(&fixture, JOB(V6E_16, BATCH_64, ""), &space);
    assert_true(space.families_count > 100);
    assert_int_equal(space.considered, space.families_count + space.illegal);
    for (int i = 0; i < space.families_count; i++) {
        const struct adv_family *family = &space.families[i];
        int devices = 1;
        for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) devices *= family->ici[axis];
        assert_int_equal(devices, 16);
        assert_close(family->per_device_batch_size * 16 * family->gradient_accumulation_steps, 64, 1e-12);
        for (int k = 0; k < i; k++) {
            struct adv_family other = space.families[k];
            bool same = !memcmp(other.ici, family->ici, sizeof other.ici) &&
                        other.gradient_accumulation_steps == family->gradient_accumulation_steps &&
                        other.cp_strategy == family->cp_strategy &&
                        other.layers_per_stage == family->layers_per_stage &&
                        other.pipeline_microbatches == family->pipeline_microbatches &&
                        other.quantization == family->quantization;
            assert_false(same);
        }
    }
    fixture_close(&fixture);
}

/* Of a space that the request's memory has no room for, the first families are kept, as many as have room
 * with their bounds, and all are counted. */
static void a_space_beyond_the_memory_keeps_its_first_families(void **state)
{
    (void)state;
    static struct fixture whole_fixture, fixture;
    static const char job[] = JOB("{\"chip\":\"v5p\",\"topology\":\"4x4x8\"}", BATCH_64, "");
    struct adv_space whole, space;
    build(&whole_fixture, job, &whole);
    assert_int_equal(whole.left_out, 0);
    fixture_open(&fixture, job);
    fixture.arena.limit_bytes = whole_fixture.arena.used_bytes; /* the bounds have no room */
    assert_int_equal(
        adv_space_build(fixture.request, fixture.constants, &fixture.arena, &space, &fixture.err), ADV_OK);
    assert_true(space.families_count > 0 && space.left_out > 0);
    assert_int_equal(space.families_count + space.left_out, whole.families_count);
    assert_true(fixture.arena.used_bytes + (size_t)space.families_count * ADV_BOUND_BYTES_PER_FAMILY <
                fixture.arena.limit_bytes);
    assert_int_equal(space.considered, whole.considered);
    assert_int_equal(space.illegal, whole.illegal);
    for (int i = 0; i < space.families_count; i++) {
        assert_memory_equal(space.families[i].ici, whole.families[i].ici, sizeof whole.families[i].ici);
        assert_int_equal(space.families[i].cp_strategy, whole.families[i].cp_strategy);
        assert_int_equal(space.families[i].bounded_by, whole.families[i].bounded_by);
    }
    fixture_close(&fixture);
    fixture_close(&whole_fixture);
}

/* Meshes beyond their share of the memory are counted, one each; without room for a family there is no space.
 */
static void meshes_without_room_are_counted_and_no_room_at_all_is_refused(void **state)
{
    (void)state;
    static struct fixture whole_fixture, fixture;
    static const char job[] = JOB("{\"chip\":\"tpu7x\",\"topology\":\"16x16x16\"}",
                                  "{\"seq_len\":8192,\"per_device_batch_size\":1}", "");
    struct adv_space whole, space;
    struct adv_mesh_list all, some;
    fixture_open(&whole_fixture, job);
    assert_int_equal(adv_space_meshes(whole_fixture.request, &whole_fixture.arena, &all), ADV_OK);
    fixture_open(&fixture, job);
    fixture.arena.limit_bytes = fixture.arena.used_bytes + 8 * sizeof *all.ici * 300;
    assert_int_equal(adv_space_meshes(fixture.request, &fixture.arena, &some), ADV_OK);
    assert_true(all.left_out == 0 && some.count == 300);
    assert_int_equal(some.count + some.left_out, all.count);
    assert_memory_equal(some.ici, all.ici, 300 * sizeof *all.ici);
    fixture_close(&fixture);
    fixture_close(&whole_fixture);

    build(&whole_fixture, job, &whole);
    for (size_t left_bytes = 0; left_bytes < 1 << 20; left_bytes += left_bytes / 8 + 64) {
        fixture_open(&fixture, job);
        fixture.arena.limit_bytes = fixture.arena.used_bytes + left_bytes;
        const adv_code code =
            adv_space_build(fixture.request, fixture.constants, &fixture.arena, &space, &fixture.err);
        if (code == ADV_OK) {
            assert_true(space.families_count > 0);
            assert_int_equal(space.considered, space.families_count + space.illegal + space.left_out);
            assert_true(space.considered <= whole.considered);
        } else {
            assert_true(code == ADV_E_REQUEST_MEMORY || (code == ADV_E_MEMORY && fixture.arena.was_refused));
            assert_int_equal(fixture.err.count, 1);
        }
        fixture_close(&fixture);
    }
    fixture_close(&whole_fixture);
}

static void only_allowed_axes_are_used_and_fsdp_takes_the_rest(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    build(&fixture,
          JOB(V6E_16, "{\"seq_len\":8192,\"per_device_batch_size\":2}",
              ",\"search\":{\"axes\":[\"fsdp\",\"tensor\"]}"),
          &space);
    /* 8 key-value heads: tensor 1, 2, 4, 8; one batch; no context, so one strategy */
    assert_int_equal(space.families_count, 4);
    for (int i = 0; i < space.families_count; i++)
        assert_int_equal(space.families[i].ici[ADV_AXIS_FSDP] * space.families[i].ici[ADV_AXIS_TENSOR], 16);
    fixture_close(&fixture);
}

static void splitting_physical_axes_is_asked_for_exactly_where_the_mesh_needs_it(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    int split = 0, legal = 0;
    build(&fixture, JOB(V6E_16, BATCH_64, ""), &space);
    for (int i = 0; i < space.families_count; i++) {
        struct adv_plan plan;
        struct adv_mesh mesh;
        adv_space_plan(&space, &space.families[i], &plan);
        assert_int_equal(adv_mesh_place(&fixture.request->cluster, &plan, &mesh, NULL), ADV_OK);
        assert_int_equal(plan.family.allow_split_physical_axes, mesh.needs_split);
        split += plan.family.allow_split_physical_axes;
        legal++;
    }
    assert_in_range(split, 1, legal - 1);
    fixture_close(&fixture);
    build(&fixture, JOB(V6E_16, BATCH_64, ",\"pins\":{\"allow_split_physical_axes\":false}"), &space);
    assert_int_equal(space.families_count, legal - split);
    fixture_close(&fixture);
}

static void a_pinned_axis_keeps_its_degree_even_when_it_is_not_searched(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    build(&fixture,
          JOB(V6E_16, BATCH_64, ",\"pins\":{\"ici_context_parallelism\":4},\"search\":{\"axes\":[\"fsdp\"]}"),
          &space);
    assert_true(space.families_count > 0);
    for (int i = 0; i < space.families_count; i++) {
        assert_int_equal(space.families[i].ici[ADV_AXIS_CONTEXT], 4);
        assert_int_equal(space.families[i].ici[ADV_AXIS_FSDP], 4);
    }
    fixture_close(&fixture);
}

static void slices_are_joined_by_data_or_by_fsdp(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    build(&fixture,
          JOB("{\"chip\":\"v6e\",\"topology\":\"4x4\",\"slices\":4}",
              "{\"seq_len\":8192,\"per_device_batch_size\":4}", ",\"search\":{\"axes\":[\"fsdp\"]}"),
          &space);
    assert_int_equal(space.families_count, 3); /* data x fsdp over slices: 4x1, 2x2, 1x4 */
    for (int i = 0; i < space.families_count; i++)
        assert_int_equal(space.families[i].dcn[ADV_AXIS_DATA] * space.families[i].dcn[ADV_AXIS_FSDP], 4);
    fixture_close(&fixture);
}

static void slices_are_joined_by_every_product_of_data_fsdp_and_pipelines(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    bool seen[5][5] = {{false}};
    build(&fixture,
          JOB("{\"chip\":\"v6e\",\"topology\":\"4x4\",\"slices\":4}",
              "{\"seq_len\":8192,\"per_device_batch_size\":4}", ""),
          &space);
    for (int i = 0; i < space.families_count; i++)
        seen[space.families[i].dcn[ADV_AXIS_STAGE]][space.families[i].dcn[ADV_AXIS_FSDP]] = true;
    for (int stages = 1; stages <= 4; stages *= 2)
        for (int fsdp = 1; fsdp <= 4 / stages; fsdp *= 2) assert_true(seen[stages][fsdp]);
    fixture_close(&fixture);
}

static void pipelines_of_deepseek_are_of_its_expert_layers(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    int pipelines = 0;
    build(&fixture, MOE_JOB, &space);
    for (int i = 0; i < space.families_count; i++) {
        const struct adv_family *family = &space.families[i];
        int stages = family->ici[ADV_AXIS_STAGE] * family->dcn[ADV_AXIS_STAGE];
        if (stages == 1) continue;
        pipelines++;
        assert_int_equal(26 % (stages * family->layers_per_stage), 0); /* 27 layers, the first is dense */
    }
    assert_true(pipelines > 100);
    fixture_close(&fixture);
}

/* MaxText does not compile the others. */
static void pipelines_of_grouped_experts_pass_each_stage_once(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    int pipelines = 0;
    build(&fixture,
          "{\"model\":\"deepseek2-16b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"2x2x2\"},"
          "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":32}}",
          &space);
    for (int i = 0; i < space.families_count; i++) {
        const struct adv_family *family = &space.families[i];
        if (family->ici[ADV_AXIS_STAGE] == 1) continue;
        pipelines++;
        assert_int_equal(family->ici[ADV_AXIS_STAGE] * family->layers_per_stage, 26);
    }
    assert_true(pipelines > 0);
    fixture_close(&fixture);
}

/* The fastest of the space with this mesh, batch and number of microbatches. */
static double fastest_pipeline_s(const struct fixture *fixture, const struct adv_space *space,
                                 const struct adv_family *like)
{
    double best_s = (double)INFINITY;
    for (int i = 0; i < space->families_count; i++) {
        const struct adv_family *family = &space->families[i];
        struct adv_plan plan;
        if (memcmp(family->ici, like->ici, sizeof like->ici) != 0 ||
            memcmp(family->dcn, like->dcn, sizeof like->dcn) != 0 ||
            family->pipeline_microbatches != like->pipeline_microbatches ||
            family->gradient_accumulation_steps != like->gradient_accumulation_steps ||
            family->ring_of_experts != like->ring_of_experts ||
            family->two_stage_gather != like->two_stage_gather)
            continue;
        adv_space_plan(space, family, &plan);
        best_s = fmin(best_s, relaxed(fixture, &plan).step_time_s);
    }
    return best_s;
}

static void no_depth_of_a_pipeline_that_is_left_out_is_faster(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    int left_out = 0;
    build(&fixture, MOE_JOB, &space);
    for (int i = 0; i < space.families_count; i += 7) {
        struct adv_family other = space.families[i];
        int stages = other.ici[ADV_AXIS_STAGE] * other.dcn[ADV_AXIS_STAGE];
        if (stages == 1) continue;
        for (int depth = 1; depth <= 26; depth++) {
            struct adv_plan plan;
            other.layers_per_stage = depth;
            adv_space_plan(&space, &other, &plan);
            if (adv_plan_broken_rule(&plan, &fixture.request->model, &fixture.request->cluster)) continue;
            double best_s = fastest_pipeline_s(&fixture, &space, &other);
            double time_s = relaxed(&fixture, &plan).step_time_s;
            assert_true(best_s <= time_s * (1 + 1e-12));
            left_out += best_s < time_s;
        }
    }
    assert_true(left_out > 20);
    fixture_close(&fixture);
}

static void any_quantization_tries_the_formats_the_chip_is_native_to(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    bool seen[ADV_QUANT_FP8_FULL + 1] = {false};
    build(&fixture,
          JOB(V6E_16, "{\"seq_len\":8192,\"per_device_batch_size\":2,\"quantization\":\"any\"}", ""), &space);
    for (int i = 0; i < space.families_count; i++) seen[space.families[i].quantization] = true;
    assert_true(seen[ADV_QUANT_NONE]);
    assert_true(seen[ADV_QUANT_INT8]); /* v6e: int8, no fp8 */
    assert_false(seen[ADV_QUANT_FP8_FULL]);
    fixture_close(&fixture);
}

static void fp8_experts_run_through_tokamax_and_bf16_ones_through_megablox(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    int through[2] = {0, 0};
    build(&fixture,
          "{\"model\":\"gpt-oss-120b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},\"workload\":{"
          "\"seq_len\":4096,\"per_device_batch_size\":4,\"quantization\":\"any\"}}",
          &space);
    for (int i = 0; i < space.families_count; i++) {
        struct adv_plan plan;
        adv_space_plan(&space, &space.families[i], &plan);
        bool fp8 = plan.family.quantization == ADV_QUANT_FP8_FULL;
        assert_int_equal(plan.family.moe, fp8 ? ADV_MOE_TOKAMAX : ADV_MOE_MEGABLOX);
        through[fp8]++;
    }
    assert_true(through[0] > 0 && through[1] > 0);
    fixture_close(&fixture);
}

/* Keys go round rings and heads are exchanged in tokamax's kernel alone, which v5e has no published tiles
 * for. */
static void context_is_gathered_where_jax_kernels_attend(void **state)
{
    (void)state;
    static struct fixture fixture;
    static const char *const chips[] = {"v5e\",\"topology\":\"8x8", "v6e\",\"topology\":\"8x8"};
    for (int tokamax = 0; tokamax < 2; tokamax++) {
        struct adv_space space;
        char text[512];
        int gathered = 0, others = 0;
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"%s\"},\"workload\":{"
                       "\"seq_len\":32768,\"per_device_batch_size\":1}}",
                       chips[tokamax]);
        build(&fixture, text, &space);
        for (int i = 0; i < space.families_count; i++) {
            struct adv_plan plan;
            adv_space_plan(&space, &space.families[i], &plan);
            assert_int_equal(plan.family.use_tokamax_splash, tokamax);
            if (adv_plan_degree(&plan, ADV_AXIS_CONTEXT) == 1) continue;
            *(plan.family.cp_strategy == ADV_CP_ALL_GATHER ? &gathered : &others) += 1;
        }
        assert_true(gathered > 0);
        assert_int_equal(others > 0, tokamax);
        fixture_close(&fixture);
    }
}

static void a_batch_of_tokens_must_be_whole_sequences(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    fixture_open(&fixture, JOB(V6E_16, "{\"seq_len\":8192,\"tokens_per_step\":100000}", ""));
    assert_int_equal(
        adv_space_build(fixture.request, fixture.constants, &fixture.arena, &space, &fixture.err),
        ADV_E_INVALID);
    assert_string_equal(fixture.err.findings[0].pointer, "/workload/tokens_per_step");
    assert_non_null(
        strstr(fixture.err.findings[0].detail, "98304")); /* 12 sequences: the nearest that works */
    fixture_close(&fixture);
}

static void batches_split_into_every_number_of_accumulation_steps(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_batch_split splits[ADV_BATCH_SPLITS];
    fixture_open(&fixture, JOB(V6E_16, BATCH_64, ""));
    assert_int_equal(adv_batch_splits(fixture.request, splits, &fixture.err), 7); /* divisors of 64 */
    assert_close(splits[0].per_device_batch_size, 4, 0);
    assert_int_equal(splits[6].gradient_accumulation_steps, 64);
    fixture_close(&fixture);
}

#define MIXTRAL_JOB(pins)                                                                                    \
    "{\"model\":\"mixtral-8x7b\",\"cluster\":" V6E_16 ",\"workload\":" BATCH_64 ",\"pins\":{" pins "}}"

static bool opens(const struct adv_remat_space *open, enum adv_tensor tensor)
{
    for (int i = 0; i < open->units_count; i++)
        if (open->units[i].tensor == tensor) return true;
    return false;
}

/* Outputs of routed experts are mlpwo as well as moe_mlpwo: kept by either name they are kept. */
static void a_place_pinned_by_a_second_name_is_not_searched(void **state)
{
    (void)state;
    static struct fixture fixture;
    static const struct {
        const char *job;
        bool out, gate;
    } rows[] = {{MIXTRAL_JOB(""), true, true},
                {MIXTRAL_JOB("\"mlpwo\":\"device\""), false, true},
                {MIXTRAL_JOB("\"mlpwo\":\"remat\""), true, true}, /* the other name may keep it */
                {MIXTRAL_JOB("\"mlpwi_0\":\"offload\""), true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct adv_remat_space open;
        fixture_open(&fixture, rows[i].job);
        adv_remat_space_build(fixture.request, fixture.constants, &open);
        assert_int_equal(opens(&open, ADV_TENSOR_MOE_MLPWO), rows[i].out);
        assert_int_equal(opens(&open, ADV_TENSOR_MOE_MLPWI_0), rows[i].gate);
        assert_true(opens(&open, ADV_TENSOR_QUERY_PROJ));
        fixture_close(&fixture);
    }
}

static void an_empty_space_names_the_rule_that_empties_it(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    /* 3 sequences over 16 devices that may only be fsdp */
    fixture_search(
        &fixture,
        JOB(V6E_16, "{\"seq_len\":8192,\"global_batch_sequences\":3}", ",\"search\":{\"axes\":[\"fsdp\"]}"),
        &result);
    assert_int_equal(result.found_count, 0);
    assert_non_null(strstr(result.empty_why, "batch"));
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_uses_all_devices_and_the_whole_batch_once),
        cmocka_unit_test(a_space_beyond_the_memory_keeps_its_first_families),
        cmocka_unit_test(meshes_without_room_are_counted_and_no_room_at_all_is_refused),
        cmocka_unit_test(only_allowed_axes_are_used_and_fsdp_takes_the_rest),
        cmocka_unit_test(splitting_physical_axes_is_asked_for_exactly_where_the_mesh_needs_it),
        cmocka_unit_test(a_pinned_axis_keeps_its_degree_even_when_it_is_not_searched),
        cmocka_unit_test(slices_are_joined_by_data_or_by_fsdp),
        cmocka_unit_test(slices_are_joined_by_every_product_of_data_fsdp_and_pipelines),
        cmocka_unit_test(pipelines_of_deepseek_are_of_its_expert_layers),
        cmocka_unit_test(pipelines_of_grouped_experts_pass_each_stage_once),
        cmocka_unit_test(no_depth_of_a_pipeline_that_is_left_out_is_faster),
        cmocka_unit_test(any_quantization_tries_the_formats_the_chip_is_native_to),
        cmocka_unit_test(fp8_experts_run_through_tokamax_and_bf16_ones_through_megablox),
        cmocka_unit_test(context_is_gathered_where_jax_kernels_attend),
        cmocka_unit_test(a_batch_of_tokens_must_be_whole_sequences),
        cmocka_unit_test(batches_split_into_every_number_of_accumulation_steps),
        cmocka_unit_test(a_place_pinned_by_a_second_name_is_not_searched),
        cmocka_unit_test(an_empty_space_names_the_rule_that_empties_it),
    };
    return run_group(tests);
}
