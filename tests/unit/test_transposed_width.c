/* What XLA does where fsdp_transpose and tensor axes share the width of a dense feed-forward: its activations
 * meet over the tensor axis, and without an fsdp axis each device multiplies for the whole width's gradients.
 */
#include "engine/cost/layer.h"
#include "engine/cost/layer_memory.h"
#include "engine/cost/projections.h"
#include "engine/cost/schedule.h"
#include "tests/unit/cost_fixture.h"

enum { TENSOR = 4 };

static struct bench *open_axes(const char *chip, int fsdp, int transpose)
{
    static struct bench b;
    bench_open(&b, "llama3.1-8b", chip, 4, 4, 4);
    bench_policy(&b, ADV_POLICY_FULL);
    b.plan.family.ici[ADV_AXIS_FSDP] = fsdp * (int)b.cluster.chip.devices_per_chip;
    b.plan.family.ici[ADV_AXIS_FSDP_TRANSPOSE] = transpose;
    b.plan.family.ici[ADV_AXIS_TENSOR] = TENSOR;
    bench_place(&b);
    return &b;
}

static double working_bytes(const char *chip, int fsdp, int transpose)
{
    const struct bench *b = open_axes(chip, fsdp, transpose);
    const struct adv_layer *layer = &b->model.layers[0];
    return adv_memory_layer_working(&b->cost, layer, adv_model_layer_params(&b->model, layer)).tokens_bytes;
}

static void activations_of_the_whole_width_are_there(void **state)
{
    (void)state;
    const double whole = 2.0 * 4096 * 14336 * TENSOR; /* [tokens, mlp] of the tensor group */
    const double more = working_bytes("v5p", 4, 4) - working_bytes("v5p", 16, 1);
    assert_true(more > 1.0 * whole && more < 2.0 * whole); /* of both inputs, less what is there anyway */
}

static double backward_s(int fsdp, int transpose, enum adv_tensor name)
{
    const struct bench *b = open_axes("v5p", fsdp, transpose);
    struct adv_projection table[ADV_PROJECTIONS_MAX];
    const int count = adv_projections(&b->model, &b->model.layers[0], table);
    for (int i = 0; i < count; i++)
        if (table[i].names == UINT32_C(1) << name)
            return adv_cost_projection_s(&b->cost, &table[i], ADV_PASS_BWD);
    fail_msg("no projection makes %s", adv_tensor_name(name));
    return 0.0;
}

static void gradients_of_the_whole_width_are_multiplied_again(void **state)
{
    (void)state;
    static const enum adv_tensor names[] = {ADV_TENSOR_MLPWI_0, ADV_TENSOR_MLPWI_1, ADV_TENSOR_MLPWO};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const double once = backward_s(16, 1, names[i]);
        assert_close(backward_s(4, 4, names[i]), once, 1e-12);
        /* a product for the inputs, and one for the weights that is TENSOR times as large */
        assert_close(backward_s(1, 16, names[i]), once * (1.0 + TENSOR) / 2.0, 0.01);
    }
    assert_close(backward_s(1, 16, ADV_TENSOR_QUERY_PROJ), backward_s(16, 1, ADV_TENSOR_QUERY_PROJ), 1e-12);
}

static const struct adv_slot *tensor_slot(const char *chip, int fsdp, int transpose)
{
    struct bench *b = open_axes(chip, fsdp, transpose);
    adv_schedule_tensor(&b->cost, &b->model.layers[0], 1.0, &b->account);
    return &b->account.slots[ADV_TERM_TENSOR];
}

static double tensor_s(const char *chip, int fsdp, int transpose)
{
    return tensor_slot(chip, fsdp, transpose)->seconds;
}

static void activations_travel_over_the_tensor_axis(void **state)
{
    (void)state;
    const double plain = tensor_s("v5p", 16, 1), emb = 4096, width = 14336;
    /* eleven passes of [tokens, emb], and four of [tokens, mlp] */
    assert_close(tensor_s("v5p", 1, 16), plain * (11.0 + 4.0 * width / emb) / 11.0, 0.05);
    assert_close(tensor_s("v5p", 4, 4), tensor_s("v5p", 1, 16), 1e-9);
    const double plain_bytes = tensor_slot("v5p", 16, 1)->bytes;
    assert_close(tensor_slot("v5p", 1, 16)->bytes, plain_bytes * (10.0 + 4.0 * width / emb) / 10.0, 1e-9);
}

static void tpu7x_does_so_beside_fsdp_only(void **state)
{
    (void)state;
    assert_false(adv_cost_meets_width(&open_axes("v5p", 16, 1)->cost));
    assert_true(adv_cost_meets_width(&open_axes("v5p", 1, 16)->cost));
    assert_true(adv_cost_repeats_width(&open_axes("v5p", 1, 16)->cost));
    assert_false(adv_cost_repeats_width(&open_axes("v5p", 4, 4)->cost));
    struct bench *b = open_axes("tpu7x", 4, 4);
    assert_true(adv_cost_meets_width(&b->cost));
    b->plan.family.ici[ADV_AXIS_FSDP] = 1;
    b->plan.family.ici[ADV_AXIS_FSDP_TRANSPOSE] = 32;
    bench_place(b);
    assert_false(adv_cost_meets_width(&b->cost));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_of_the_whole_width_are_there),
        cmocka_unit_test(gradients_of_the_whole_width_are_multiplied_again),
        cmocka_unit_test(activations_travel_over_the_tensor_axis),
        cmocka_unit_test(tpu7x_does_so_beside_fsdp_only),
    };
    return run_group(tests);
}
