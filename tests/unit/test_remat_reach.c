/* What a family's solution says of lower cutoffs is what solving it with them finds. */
#include "tests/unit/advise_fixture.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/cost/scratch.h"
#include "engine/search/remat_space.h"
#include "engine/search/space.h"

/* A family solved once, on a tape. */
struct solved {
    struct adv_tape tape;
    struct adv_plan plan;
    struct adv_estimate estimate;
    struct adv_remat_reach reach;
    enum adv_remat_outcome outcome;
};

struct search {
    const struct fixture *fixture;
    struct adv_space space;
    struct adv_remat_space open;
    struct adv_cost_scratch scratch;
};

static void solve(struct search *search, int family, double cutoff, struct solved *solved)
{
    struct adv_pricer pricer = {.request = search->fixture->request,
                                .constants = search->fixture->constants,
                                .scratch = &search->scratch,
                                .share = {1.0, 0.92},
                                .budget = LONG_MAX,
                                .tape = &solved->tape};
    adv_tape_rewind(&solved->tape);
    memset(&solved->estimate, 0, sizeof solved->estimate);
    adv_space_plan(&search->space, &search->space.families[family], &solved->plan);
    solved->outcome = adv_remat_solve_within(&search->open, &pricer, cutoff, &solved->plan, &solved->estimate,
                                             &solved->reach);
    assert_false(solved->tape.broken || pricer.spent);
}

static double metric_of(const struct adv_tape *tape, int row)
{
    struct adv_estimate estimate;
    assert_true(adv_tape_read(tape, row, &estimate));
    return adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate);
}

/* The rows of `all` that the cutoff leaves are those of `some`. */
static void assert_rows(const struct adv_tape *all, double cutoff, const struct adv_tape *some)
{
    int count = 0;
    for (int i = 0; i < all->count; i++) {
        if (!(all->rows[i].above < cutoff)) continue;
        assert_true(count < some->count);
        const struct adv_tape_row *row = &all->rows[i], *other = &some->rows[count++];
        assert_int_equal(row->places.tensors, other->places.tensors);
        assert_int_equal(row->places.num_vocab_tiling, other->places.num_vocab_tiling);
        assert_int_equal(row->known, other->known);
        if (row->known) assert_memory_equal(row->priced, other->priced, sizeof row->priced);
    }
    assert_int_equal(count, some->count);
}

static bool is_as_found(struct search *search, int family, const struct solved *solved, double cutoff)
{
    static struct solved again;
    enum adv_remat_outcome outcome = solved->outcome;
    if (!adv_remat_outcome_below(&solved->reach, cutoff, &outcome)) return false;
    solve(search, family, cutoff, &again);
    assert_int_equal(outcome, again.outcome);
    assert_rows(&solved->tape, cutoff, &again.tape);
    if (outcome != ADV_REMAT_SOLVED) return true;
    assert_true(adv_plan_same_family(&solved->plan, &again.plan));
    assert_int_equal(adv_remat_places(&solved->plan), adv_remat_places(&again.plan));
    assert_int_equal(solved->plan.num_vocab_tiling, again.plan.num_vocab_tiling);
    assert_memory_equal(&solved->estimate, &again.estimate, ADV_ESTIMATE_AGAIN_BYTES);
    return true;
}

/* Cutoffs at, just below and just above what was priced. */
static void check_family(struct search *search, int family, int *asked, int *known)
{
    enum { ROWS = 24 };
    static struct solved first, lower;
    solve(search, family, (double)INFINITY, &first);
    for (int i = 0; i < ROWS && first.tape.count > 0; i++) {
        const double metric = metric_of(&first.tape, i * (first.tape.count - 1) / (ROWS - 1));
        const double cutoffs[] = {metric, nextafter(metric, 0), nextafter(metric, (double)INFINITY)};
        for (int c = 0; c < 3; c++) {
            (*asked)++;
            *known += is_as_found(search, family, &first, cutoffs[c]);
        }
        solve(search, family, metric, &lower); /* from there further down */
        *known += is_as_found(search, family, &lower, metric * 0.999);
        (*asked)++;
    }
}

static const char *const jobs[] = {
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},\"workload\":{\"seq_"
    "len\":8192,\"global_batch_sequences\":256}}",
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"8x8\"},\"workload\":{\"seq_len\":"
    "8192,\"global_batch_sequences\":64}}",
    "{\"model\":\"qwen3-30b-a3b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":{\"seq_len\":"
    "4096,\"global_batch_sequences\":128}}",
    "{\"model\":\"gemma3-27b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x8\"},\"workload\":{\"seq_len\":"
    "32768,\"global_batch_sequences\":32}}",
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":{\"seq_len\":"
    "8192,\"global_batch_sequences\":64},\"pins\":{\"remat_policy\":\"full\"}}",
};

static void lower_cutoffs_are_answered_as_if_solved(void **state)
{
    (void)state;
    enum { FAMILIES = 40 };
    static struct fixture fixture;
    static struct search search;
    int asked = 0, known = 0;
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        fixture_open(&fixture, jobs[j]);
        search.fixture = &fixture;
        search.scratch.valid = false;
        assert_int_equal(
            adv_space_build(fixture.request, fixture.constants, &fixture.arena, &search.space, &fixture.err),
            ADV_OK);
        adv_remat_space_build(fixture.request, fixture.constants, &search.open);
        for (int i = 0; i < FAMILIES; i++)
            check_family(&search, i * search.space.families_count / FAMILIES, &asked, &known);
        fixture_close(&fixture);
    }
    assert_true(asked > 1000);
    assert_true(known > asked / 10 * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lower_cutoffs_are_answered_as_if_solved),
    };
    return run_group(tests);
}
