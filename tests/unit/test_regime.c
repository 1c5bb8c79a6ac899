/* When XLA makes windowed einsums: as its log says of compiled steps (tests/compile/einsums.py, libtpu
 * 0.0.50.1). */
#include "tests/unit/cost_fixture.h"

#include "engine/cost/regime.h"

/* llama3.1-8b, one sequence a device, all devices under FSDP. A loop pays where the multiplication by a shard
 * is long enough beside its transfer: that depends on the tokens of a device and on how many share. */
static void weights_arrive_in_a_loop_where_there_are_tokens_enough(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        int x, y, z;
        int seq_len;
        bool windowed;
    } seen[] = {
        {"tpu7x", 2, 2, 1, 1024, false}, {"tpu7x", 2, 2, 1, 2048, true}, {"v6e", 2, 4, 1, 1024, false},
        {"v6e", 2, 4, 1, 2048, true},    {"v5p", 2, 2, 2, 512, false},   {"v5p", 2, 2, 2, 1024, true},
        {"v5e", 2, 4, 1, 512, false},    {"v6e", 4, 8, 1, 512, true},    {"v5p", 4, 4, 4, 4096, false},
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        static struct bench b;
        bench_open(&b, "llama3.1-8b", seen[i].chip, seen[i].x, seen[i].y, seen[i].z);
        b.plan.family.seq_len = seen[i].seq_len;
        bench_place(&b);
        if (adv_memory_windowed(&b.cost) != seen[i].windowed)
            fail_msg("%s, %d tokens a device", seen[i].chip, seen[i].seq_len);
    }
}

/* Of activations it depends on a device's part of the feed-forward's width and on the rings of the group, not
 * on the tokens. */
static void activations_come_in_a_loop_where_the_width_is_enough(void **state)
{
    (void)state;
    static const struct {
        const char *model, *chip;
        int x, y, z;
        int tensor;
        bool windowed;
    } seen[] = {
        {"llama2-70b", "v5p", 4, 4, 8, 8, true},   /* 3,584 columns, one ring */
        {"llama2-70b", "v5p", 4, 4, 4, 16, true},  /* 1,792 columns, two rings */
        {"llama2-70b", "v5p", 4, 4, 8, 32, false}, /* 896 columns */
        {"mistral-7b", "v5e", 4, 8, 1, 2, false},  /* two devices send half of all each way */
        {"llama3.1-8b", "v6e", 4, 4, 1, 4, true},  /* 3,584 columns */
        {"qwen2.5-1.5b", "v6e", 4, 4, 1, 4, false},
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        for (int batch = 1; batch <= 4; batch *= 4) {
            static struct bench b;
            bench_open(&b, seen[i].model, seen[i].chip, seen[i].x, seen[i].y, seen[i].z);
            bench_axes(&b, ADV_AXIS_TENSOR, seen[i].tensor);
            b.plan.family.per_device_batch_size = batch;
            bench_place(&b);
            if (adv_memory_tensor_windowed(&b.cost, &b.model.layers[0]) != seen[i].windowed)
                fail_msg("%s %s, %d devices", seen[i].model, seen[i].chip, seen[i].tensor);
            b.plan.flags.collective_matmul_disabled = 1;
            bench_place(&b);
            assert_false(adv_memory_tensor_windowed(&b.cost, &b.model.layers[0]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_arrive_in_a_loop_where_there_are_tokens_enough),
        cmocka_unit_test(activations_come_in_a_loop_where_the_width_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
