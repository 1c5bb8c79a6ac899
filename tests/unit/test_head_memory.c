/* Logits, their gradient and the head: at the loss, what is lost between them, and what outlives it. */
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

/* Bytes lost between buffers at the loss, of a step that keeps the usual tensors; z 1: a slice of two
 * dimensions. */
static double lost_bytes(const char *model, const char *chip, int x, int y, int z, double batch,
                         int64_t seq_len)
{
    static struct bench b;
    bench_open(&b, model, chip, x, y, z);
    b.plan.family.per_device_batch_size = batch;
    b.plan.family.seq_len = seq_len;
    bench_policy(&b, ADV_POLICY_MINIMAL_WITH_CONTEXT);
    (void)bench_estimate(&b);
    for (int i = 0; i < b.ledger.memory_count; i++)
        if (b.ledger.memory[i].at == ADV_AT_LOSS && strcmp(b.ledger.memory[i].name, "fragmentation") == 0)
            return b.ledger.memory[i].bytes_per_device;
    return 0.0;
}

/* Compiled steps lose this between buffers; the usual share of the heap comes on top. */
static void places_that_logits_do_not_fit_into_are_lost(void **state)
{
    (void)state;
    /* a head that is the table: 24 of its rows a device, the mask of the lookup alone */
    assert_close(lost_bytes("gemma-7b", "tpu7x", 4, 4, 4, 1, 4096), 1.09e9, 0.2);
    /* 9 rows, gathered as 16, and the mask */
    assert_close(lost_bytes("gemma2-2b", "tpu7x", 4, 4, 8, 2, 2048), 3.15e9, 0.1);
    assert_close(lost_bytes("gemma2-2b", "v6e", 8, 8, 1, 2, 4096), 1.48e9, 0.15); /* 36 as 40; no mask */
    /* a head of its own: 20 rows as 24, twice, less what the mask and the logits fill */
    assert_close(lost_bytes("qwen3-14b", "tpu7x", 4, 4, 8, 2, 2048), 1.85e9, 0.15);
    assert_close(lost_bytes("qwen3-14b", "tpu7x", 4, 4, 8, 2, 4096), 2.35e9, 0.2);
    assert_true(lost_bytes("qwen3-14b", "tpu7x", 4, 4, 4, 1, 4096) < 0.2e9); /* 40 rows */
    assert_true(lost_bytes("gemma-7b", "tpu7x", 2, 2, 1, 1, 4096) < 0.3e9);  /* windowed einsums */
}

/* Logits kept for a late gradient of the head, of all that there are. */
static double late_logits(const char *model, const char *chip, int x, int y, int z, int tensor, int host)
{
    static struct bench b;
    bench_open(&b, model, chip, x, y, z);
    b.plan.family.ici[ADV_AXIS_TENSOR] = tensor;
    b.plan.family.ici[ADV_AXIS_FSDP] /= tensor;
    b.plan.family.per_device_batch_size = 1.0 / tensor;
    b.plan.family.seq_len = 4096;
    bench_policy(&b, ADV_POLICY_FULL);
    if (host) b.plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    (void)bench_estimate(&b);
    double bytes = 0.0;
    for (int i = 0; i < b.ledger.memory_count; i++)
        if (b.ledger.memory[i].at == ADV_AT_BACKWARD && strcmp(b.ledger.memory[i].name, "logits") == 0)
            bytes += b.ledger.memory[i].bytes_per_device;
    return bytes / (2.0 * 4096 * (double)b.model.vocab_size / tensor);
}

static void few_devices_keep_no_logits_and_split_tables_keep_two(void **state)
{
    (void)state;
    assert_true(late_logits("qwen3-14b", "v5p", 2, 2, 2, 1, 0) < 0.1);
    assert_close(late_logits("qwen3-14b", "v5p", 2, 2, 4, 1, 0), 1.0, 0.2);
    assert_close(late_logits("llama2-7b", "v5p", 2, 2, 2, 1, 0), 1.0, 0.2); /* a small vocabulary */
    assert_close(late_logits("gemma2-27b", "v5p", 2, 4, 4, 4, 0), 2.0, 0.1);
    assert_close(late_logits("qwen3-14b", "v5p", 2, 4, 4, 4, 0), 1.0, 0.3);
    assert_close(late_logits("gemma2-27b", "v4", 4, 4, 4, 4, 1), 1.0, 0.1); /* beside transfers */
}

static double loss_staging(const char *model, int tiles, int microbatches)
{
    static struct bench b;
    bench_open(&b, model, "v6e", 4, 8, 1);
    bench_policy(&b, ADV_POLICY_FULL);
    b.plan.optimizer_host_offload = true;
    b.plan.num_vocab_tiling = tiles;
    b.plan.family.gradient_accumulation_steps = microbatches;
    (void)bench_estimate(&b);
    return bench_bytes_at(&b, ADV_AT_LOSS, "host_staging") /
           bench_bytes_at(&b, ADV_AT_UPDATE, "optimizer_state");
}

static void moments_of_experts_come_while_tiles_go_by(void **state)
{
    (void)state;
    assert_close(loss_staging("qwen3-30b-a3b", 2, 1), 0.74, 0.1); /* of the moments */
    assert_close(loss_staging("qwen3-30b-a3b", 1, 1), 0.0, 0.0);
    assert_close(loss_staging("qwen3-30b-a3b", 2, 2), 0.0, 0.0);
    assert_close(loss_staging("qwen3-14b", 2, 1), 0.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sequence_has_a_gradient_of_its_logits_of_its_own),
        cmocka_unit_test(a_gradient_of_logits_of_its_own_spares_a_head),
        cmocka_unit_test(places_that_logits_do_not_fit_into_are_lost),
        cmocka_unit_test(few_devices_keep_no_logits_and_split_tables_keep_two),
        cmocka_unit_test(moments_of_experts_come_while_tiles_go_by),
    };
    return run_group(tests);
}
