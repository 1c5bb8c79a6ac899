/* Members that answers include for pictures: sums, conservation, and that nothing is there unasked. */
#include "tests/unit/answer_fixture.h"

#include <math.h>

static const char *const jobs[] = {
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},\"config\":{"
    "\"per_device_batch_size\":2,\"max_target_length\":8192,\"ici_fsdp_parallelism\":-1,\"remat_policy\":"
    "\"custom\",\"decoder_layer_input\":\"offload\"},\"include\":[\"timeline\",\"roofline\",\"links\","
    "\"scaling\"]}",
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\",\"slices\":2},\"config\":{"
    "\"per_device_batch_size\":2,\"max_target_length\":8192,\"ici_fsdp_parallelism\":4,"
    "\"ici_tensor_parallelism\":4,\"dcn_data_parallelism\":2},\"include\":[\"timeline\",\"roofline\","
    "\"links\",\"scaling\"]}",
    "{\"model\":\"deepseek2-16b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},\"config\":{"
    "\"per_device_batch_size\":4,\"max_target_length\":4096,\"ici_fsdp_parallelism\":16,"
    "\"ici_expert_parallelism\":4},\"include\":[\"timeline\",\"roofline\",\"links\",\"scaling\"]}",
    "{\"model\":\"gemma3-12b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},\"config\":{"
    "\"per_device_batch_size\":1,\"max_target_length\":8192,\"ici_fsdp_parallelism\":16,"
    "\"ici_context_parallelism\":4,\"context_parallel_strategy\":\"all_gather\"},\"include\":[\"timeline\","
    "\"roofline\",\"links\",\"scaling\"]}",
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static double number(const json_t *object, const char *member)
{
    return json_number_value(json_object_get(object, member));
}

static const char *text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

static double part(const json_t *answer, const char *name, const char *member)
{
    size_t i;
    json_t *row = NULL;
    json_array_foreach(json_object_get(answer, "time_parts"), i, row)
    {
        if (strcmp(text(row, "name"), name) == 0) return number(row, member);
    }
    return 0.0;
}

static void passes_and_what_is_outside_add_up_to_the_step(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, jobs[job]);
        const json_t *timeline = json_object_get(answer, "timeline");
        double sum = 0.0;
        size_t i;
        json_t *row = NULL;
        json_array_foreach(json_object_get(timeline, "layers"), i, row)
        {
            sum += number(row, "times") *
                   (number(row, "forward_s") + number(row, "recompute_s") + number(row, "backward_s"));
        }
        json_array_foreach(json_object_get(timeline, "outside"), i, row) sum +=
            number(row, "exposed_seconds");
        assert_close(sum, number(answer, "step_time_s"), 1e-9);
        assert_close(number(timeline, "step_time_s"), number(answer, "step_time_s"), 1e-9);
        json_decref(answer);
    }
}

/* In each layer: what is exposed follows on without a gap or an overlap, and is as long as the passes. */
static void a_layer_computes_or_waits_at_every_moment(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, jobs[job]);
        size_t i, k;
        json_t *layer = NULL, *block = NULL;
        json_array_foreach(json_object_get(json_object_get(answer, "timeline"), "layers"), i, layer)
        {
            double end = 0.0;
            json_array_foreach(json_object_get(layer, "blocks"), k, block)
            {
                if (!json_is_true(json_object_get(block, "exposed"))) continue;
                assert_true(fabs(number(block, "start_s") - end) < 1e-9);
                end = number(block, "start_s") + number(block, "seconds");
            }
            assert_close(
                end, number(layer, "forward_s") + number(layer, "recompute_s") + number(layer, "backward_s"),
                1e-9);
        }
        json_decref(answer);
    }
}

/* Blocks of a term, hidden and exposed, in all layers and outside, are the term's seconds of the ledger. */
static void lanes_hold_all_that_the_ledger_sends(void **state)
{
    (void)state;
    static const char *const sent[] = {"fsdp_all_gather",    "fsdp_reduce_scatter", "tensor_collectives",
                                       "expert_collectives", "context_collectives", "host_offload"};
    int seen = 0;
    for (int job = 0; job < JOBS; job++) {
        json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, jobs[job]);
        const json_t *timeline = json_object_get(answer, "timeline");
        for (size_t s = 0; s < sizeof sent / sizeof *sent; s++) {
            double sum = 0.0;
            size_t i, k;
            json_t *row = NULL, *block = NULL;
            json_array_foreach(json_object_get(timeline, "layers"), i, row)
            {
                json_array_foreach(json_object_get(row, "blocks"), k, block)
                {
                    if (strcmp(text(block, "name"), sent[s]) == 0)
                        sum += number(row, "times") * number(block, "seconds");
                }
            }
            json_array_foreach(json_object_get(timeline, "outside"), i, row)
            {
                if (strcmp(text(row, "name"), sent[s]) == 0) sum += number(row, "seconds");
            }
            assert_close(sum, part(answer, sent[s], "seconds"), 1e-8);
            seen += sum > 0.0;
        }
        json_decref(answer);
    }
    assert_true(seen >= 8);
}

static void operations_do_the_flops_of_the_ledger(void **state)
{
    (void)state;
    static const char *const terms[] = {
        "matmul_forward",        "matmul_recompute",        "matmul_backward",
        "attention_forward",     "attention_recompute",     "attention_backward",
        "expert_matmul_forward", "expert_matmul_recompute", "expert_matmul_backward"};
    for (int job = 0; job < JOBS; job++) {
        json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, jobs[job]);
        double flops = 0.0, seconds = 0.0, ledger_flops = 0.0, ledger_s = 0.0;
        size_t i, k;
        json_t *layer = NULL, *row = NULL;
        json_array_foreach(json_object_get(json_object_get(answer, "roofline"), "layers"), i, layer)
        {
            json_array_foreach(json_object_get(layer, "operations"), k, row)
            {
                if (number(row, "flops_per_device") <= 0.0) continue;
                flops += number(layer, "times") * number(row, "flops_per_device");
                seconds += number(layer, "times") * number(row, "seconds");
                assert_true(number(row, "flops_per_s_per_device") <
                            1.001 *
                                number(json_object_get(answer, "roofline"), "peak_flops_per_s_per_device"));
            }
        }
        for (size_t t = 0; t < sizeof terms / sizeof *terms; t++) {
            ledger_flops += part(answer, terms[t], "flops_per_device");
            ledger_s += part(answer, terms[t], "seconds");
        }
        assert_close(flops, ledger_flops, 1e-6);
        assert_close(seconds, ledger_s, 1e-6);
        json_decref(answer);
    }
}

/* Of deepseek2-16b: 16 of its 64 experts on a device, 2048 x 1408 each, three matrices of two bytes. */
static void operations_are_named_and_count_what_they_move(void **state)
{
    (void)state;
    json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, jobs[2]);
    const double weight_bytes = 16.0 * 2048.0 * 1408.0 * 3.0 * 2.0;
    const double rows = 4.0 * 4096.0 * 6.0; /* a device's tokens, each to six experts */
    int routers = 0, forward = 0, backward = 0;
    size_t i, k;
    json_t *layer = NULL, *row = NULL;
    json_array_foreach(json_object_get(json_object_get(answer, "roofline"), "layers"), i, layer)
    {
        json_array_foreach(json_object_get(layer, "operations"), k, row)
        {
            const char *name = text(row, "name"), *pass = text(row, "pass");
            if (number(row, "flops_per_device") > 0.0) assert_true(number(row, "bytes_per_device") > 0.0);
            routers += strcmp(name, "router") == 0;
            assert_null(strstr(name, "projection"));
            if (strcmp(name, "expert_matmuls") != 0) continue;
            const double copies = strcmp(pass, "backward") == 0 ? 2.0 : 1.0;
            assert_close(number(row, "bytes_per_device"),
                         copies * (weight_bytes + 2.0 * 3.0 * rows * (2048.0 + 1408.0)), 1e-9);
            forward += strcmp(pass, "forward") == 0;
            backward += strcmp(pass, "backward") == 0;
        }
    }
    assert_true(routers > 0 && forward > 0 && backward > 0);
    json_decref(answer);
}

static double link_bytes(const json_t *answer, const char *term, bool torus)
{
    size_t i, k;
    json_t *link = NULL, *flow = NULL;
    double bytes = 0.0;
    json_array_foreach(json_object_get(json_object_get(answer, "links"), "links"), i, link)
    {
        if ((strlen(text(link, "link")) == 1) != torus) continue;
        json_array_foreach(json_object_get(link, "flows"), k, flow)
        {
            if (strcmp(text(flow, "term"), term) == 0) bytes += number(flow, "bytes_per_chip");
        }
    }
    return bytes;
}

/* A chip of 64 takes in 63/64 of what is gathered, over its three axes together, whatever their number. */
static void what_a_group_gathers_is_shared_by_its_links(void **state)
{
    (void)state;
    json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, jobs[0]);
    double gathered = part(answer, "fsdp_all_gather", "bytes_per_device");
    assert_true(gathered > 0.0);
    assert_close(link_bytes(answer, "fsdp_all_gather", true), gathered * 63.0 / 64.0, 1e-9);
    assert_close(link_bytes(answer, "fsdp_all_gather", false), gathered / 2.0, 1e-9);
    json_decref(answer);
}

static void flows_add_up_and_no_link_is_busier_than_the_step(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, jobs[job]), *link = NULL, *flow = NULL;
        size_t i, k;
        json_array_foreach(json_object_get(json_object_get(answer, "links"), "links"), i, link)
        {
            double sum = 0.0;
            json_array_foreach(json_object_get(link, "flows"), k, flow) sum += number(flow, "bytes_per_chip");
            assert_close(sum, number(link, "bytes_per_chip"), 1e-9);
            assert_true(number(link, "busy_frac") <= 1.0);
        }
        json_decref(answer);
    }
}

/* The plan as it is stands on each scale, priced as the answer says. */
static void every_scale_passes_through_the_plan(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, jobs[job]), *scale = NULL, *point = NULL;
        size_t i, k;
        json_array_foreach(json_object_get(answer, "scaling"), i, scale)
        {
            int found = 0;
            double last = 0.0;
            json_array_foreach(json_object_get(scale, "points"), k, point)
            {
                assert_true(number(point, "value") > last);
                last = number(point, "value");
                if (last != number(scale, "value")) continue;
                found++;
                assert_close(number(point, "step_time_s"), number(answer, "step_time_s"), 1e-9);
                assert_close(number(point, "mfu_frac"), number(answer, "mfu_frac"), 1e-9);
            }
            assert_int_equal(found, 1);
        }
        assert_int_equal(i, 4);
        json_decref(answer);
    }
}

static const char advice[] = "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
                             "\"workload\":{\"seq_len\":8192,"
                             "\"global_batch_sequences\":64}%s}";

static json_t *advise(const char *more)
{
    char request[512];
    (void)snprintf(request, sizeof request, advice, more);
    return answer_to(ADV_REQUEST_ADVISE, request);
}

/* Plans that have no price are not counted, and the baseline is. */
static void the_cloud_counts_as_many_plans_as_the_search(void **state)
{
    static const char *const requests[] = {
        "{\"model\":\"deepseek3-test\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\",\"slices\":4},"
        "\"workload\":{\"seq_len\":1048576,\"global_batch_sequences\":512},\"include\":[\"trade_off\"]}",
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
        "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":64},\"include\":[\"trade_off\"],"
        "\"baseline\":{\"config\":{\"ici_fsdp_parallelism\":16,\"per_device_batch_size\":4,"
        "\"max_target_length\":8192}}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        json_t *answer = answer_to(ADV_REQUEST_ADVISE, requests[i]);
        assert_close(number(json_object_get(answer, "trade_off"), "evaluated"),
                     number(json_object_get(answer, "search"), "evaluated"), 0.0);
        json_decref(answer);
    }
}

static void the_cloud_counts_every_plan_that_was_priced(void **state)
{
    (void)state;
    json_t *answer = advise(",\"include\":[\"trade_off\"]"), *cell = NULL;
    const json_t *cloud = json_object_get(answer, "trade_off");
    double sum = number(cloud, "beyond");
    size_t i;
    json_array_foreach(json_object_get(cloud, "cells"), i, cell) sum +=
        json_number_value(json_array_get(cell, 2));
    assert_close(sum, number(cloud, "evaluated"), 0.0);
    assert_close(sum, number(json_object_get(answer, "search"), "evaluated"), 0.0);
    assert_true(number(cloud, "beyond") < 0.2 * sum);
    /* the best plan lies in a cell that counted it */
    const json_t *best = json_object_get(json_array_get(json_object_get(answer, "ranked"), 0), "estimate");
    double time = floor(log(number(best, "step_time_s") / number(cloud, "step_time_first_s")) /
                        log(number(cloud, "step_time_ratio")));
    double bytes = floor(number(best, "hbm_bytes_per_device") / number(cloud, "hbm_bytes_per_bin"));
    bool found = false;
    json_array_foreach(json_object_get(cloud, "cells"), i, cell)
    {
        found |= json_number_value(json_array_get(cell, 0)) == time &&
                 json_number_value(json_array_get(cell, 1)) == bytes;
    }
    assert_true(found);
    json_decref(answer);
}

static void nothing_is_there_unasked_nor_different(void **state)
{
    (void)state;
    json_t *plain = advise(""), *with = advise(",\"include\":[\"trade_off\"]");
    assert_null(json_object_get(plain, "trade_off"));
    (void)json_object_del(with, "trade_off");
    assert_true(json_equal(plain, with));
    json_decref(plain);
    json_decref(with);
}

static void a_member_that_is_not_there_is_refused_with_those_that_are(void **state)
{
    (void)state;
    char request[512];
    adv_err err;
    (void)snprintf(request, sizeof request, advice, ",\"include\":[\"trade_off\",\"timeline\",7]");
    assert_null(answer_or_refusal(ADV_REQUEST_ADVISE, request, &err));
    assert_int_equal(err.count, 2);
    assert_string_equal(err.findings[0].pointer, "/include/1");
    assert_non_null(strstr(err.findings[0].hint, "trade_off"));
    assert_string_equal(err.findings[1].pointer, "/include/2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_and_what_is_outside_add_up_to_the_step),
        cmocka_unit_test(a_layer_computes_or_waits_at_every_moment),
        cmocka_unit_test(lanes_hold_all_that_the_ledger_sends),
        cmocka_unit_test(operations_do_the_flops_of_the_ledger),
        cmocka_unit_test(operations_are_named_and_count_what_they_move),
        cmocka_unit_test(what_a_group_gathers_is_shared_by_its_links),
        cmocka_unit_test(flows_add_up_and_no_link_is_busier_than_the_step),
        cmocka_unit_test(every_scale_passes_through_the_plan),
        cmocka_unit_test(the_cloud_counts_as_many_plans_as_the_search),
        cmocka_unit_test(the_cloud_counts_every_plan_that_was_priced),
        cmocka_unit_test(nothing_is_there_unasked_nor_different),
        cmocka_unit_test(a_member_that_is_not_there_is_refused_with_those_that_are),
    };
    return run_group_with_catalog(tests);
}
