/* Logits, their gradient and the head at the loss, where weights are gathered whole. */
#include "tests/unit/cost_fixture.h"

/* Tensors of logits at the loss on 64 devices that gather the head whole. */
static double loss_logits(const char *chip, double batch, int64_t seq_len, double soft_cap)
{
    static struct bench b;
    bench_open(&b, "llama3.1-8b", chip, 8, 8, 1);
    b.model.logits_soft_cap = soft_cap;
    b.plan.family.per_device_batch_size = batch;
    b.plan.family.seq_len = seq_len;
    bench_policy(&b, ADV_POLICY_FULL);
    (void)bench_estimate(&b);
    return bench_bytes(&b, "logits") / (2.0 * batch * (double)seq_len * 128256.0);
}

static void one_sequence_has_a_gradient_of_its_logits_of_its_own(void **state)
{
    (void)state;
    assert_close(loss_logits("v5e", 1, 20480, 0), 1.0, 0.2);
    assert_close(loss_logits("v5e", 1, 24576, 0), 2.0, 0.1);
    assert_close(loss_logits("v5e", 4, 8192, 0), 1.0, 0.2);
    assert_close(loss_logits("v6e", 1, 8192, 0), 2.0, 0.1);
    assert_close(loss_logits("v6e", 2, 8192, 0), 1.0, 0.2);
    /* gemma2-9b compiled with its cap and without: 13.9 and 21.6 GB */
    assert_close(loss_logits("v6e", 1, 8192, 30), 1.0, 0.2);
    assert_close(loss_logits("v6e", 2, 8192, 30), 2.0, 0.1);
    assert_close(loss_logits("v5e", 4, 8192, 30), 1.0, 0.2);
}

/* Copies of the head at the loss, there. */
static double loss_heads(const char *chip, double batch)
{
    static struct bench b;
    bench_open(&b, "llama3.1-8b", chip, 8, 8, 1);
    b.plan.family.per_device_batch_size = batch;
    b.plan.family.seq_len = 8192;
    bench_policy(&b, ADV_POLICY_FULL);
    (void)bench_estimate(&b);
    return bench_bytes(&b, "head_weights") / (2.0 * 4096 * 128256);
}

static void a_gradient_of_logits_of_its_own_spares_a_head(void **state)
{
    (void)state;
    assert_close(loss_heads("v6e", 1), 1.0, 0.2); /* compiled: head-v6e-131072-4096, one */
    assert_close(loss_heads("v6e", 2), 2.0, 0.2);
    assert_close(loss_heads("v5e", 1), 2.0, 0.2); /* too short beside emb */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sequence_has_a_gradient_of_its_logits_of_its_own),
        cmocka_unit_test(a_gradient_of_logits_of_its_own_spares_a_head),
    };
    return run_group(tests);
}
