#include "engine/cost/account.h"

#include <stdio.h>
#include <string.h>

#define ADV_TERM_ROW(id, name, resource, formula, group, source)                                             \
    {name, formula, source, ADV_RES_##resource, ADV_TERM_GROUP_##group},
static const struct {
    const char *name, *formula, *source;
    enum adv_resource resource;
    unsigned group;
} rows[ADV_TERM_COUNT] = {ADV_TERM_TABLE(ADV_TERM_ROW)};
#undef ADV_TERM_ROW

_Static_assert(ADV_TERM_COUNT <= ADV_LIMIT_LEDGER_TERMS, "the ledger holds every term");

static const char *const at_names[] = {"always", "loss", "backward", "update"};

const char *adv_memory_at_name(enum adv_memory_at at)
{
    return at_names[at];
}

/* Rows of one term for each lane: those that are whole, and those before the one with the open term. */
enum {
    WHOLE_ROWS = ADV_TERM_COUNT / ADV_ACCOUNT_LANES * ADV_ACCOUNT_LANES,
    ROWS_BEFORE_OPEN = ADV_TERM_HOST_OFFLOAD / ADV_ACCOUNT_LANES * ADV_ACCOUNT_LANES
};

double adv_account_total_s(const struct adv_account *account)
{
    double lanes_s[ADV_ACCOUNT_LANES] = {0.0};
    for (int i = 0; i < WHOLE_ROWS; i += ADV_ACCOUNT_LANES)
        for (int lane = 0; lane < ADV_ACCOUNT_LANES; lane++)
            lanes_s[lane] += account->exposed.seconds[i + lane];
    for (int i = WHOLE_ROWS; i < ADV_TERM_COUNT; i++)
        lanes_s[i % ADV_ACCOUNT_LANES] += account->exposed.seconds[i];
    return lanes_s[0] + lanes_s[1] + (lanes_s[2] + lanes_s[3]);
}

struct adv_open_sum adv_account_open_sum(const struct adv_exposed *a, const struct adv_exposed *b)
{
    struct adv_open_sum sum = {{0.0}, {0.0}};
    int behind = 0;
    for (int i = 0; i < ROWS_BEFORE_OPEN; i += ADV_ACCOUNT_LANES)
        for (int lane = 0; lane < ADV_ACCOUNT_LANES; lane++)
            sum.lanes_s[lane] += a->seconds[i + lane] + b->seconds[i + lane];
    for (int i = ROWS_BEFORE_OPEN; i < ADV_TERM_COUNT; i++) {
        const double seconds = a->seconds[i] + b->seconds[i];
        if (i % ADV_ACCOUNT_LANES != ADV_ACCOUNT_OPEN_LANE)
            sum.lanes_s[i % ADV_ACCOUNT_LANES] += seconds;
        else if (i > ADV_TERM_HOST_OFFLOAD)
            sum.behind_s[behind++] = seconds;
    }
    return sum;
}

void adv_account_resources(const struct adv_account *account, double seconds[ADV_RES_COUNT])
{
    memset(seconds, 0, ADV_RES_COUNT * sizeof *seconds);
    for (int i = 0; i < ADV_TERM_COUNT; i++) seconds[rows[i].resource] += account->exposed.seconds[i];
}

/* Forward before backward; what is equal stays in the order of the layers. */
static void sort_kernels(struct adv_ledger *ledger)
{
    for (int i = 1; i < ledger->kernels_count; i++) {
        struct adv_kernel_use moved = ledger->kernels[i];
        int at = i;
        while (at > 0 && ledger->kernels[at - 1].kernel > moved.kernel) {
            ledger->kernels[at] = ledger->kernels[at - 1];
            at--;
        }
        ledger->kernels[at] = moved;
    }
}

void adv_account_write(const struct adv_account *account)
{
    struct adv_ledger *ledger = account->ledger;
    if (!ledger) return;
    sort_kernels(ledger);
    ledger->terms_count = 0;
    for (int i = 0; i < ADV_TERM_COUNT; i++) {
        const struct adv_slot *slot = &account->slots[i];
        if (slot->seconds == 0.0 && slot->exposed_seconds == 0.0) continue;
        ledger->terms[ledger->terms_count++] = (struct adv_term){
            .name = rows[i].name,
            .formula = rows[i].formula,
            .group = rows[i].group,
            .source = rows[i].source,
            .resource = rows[i].resource,
            .seconds = slot->seconds,
            .exposed_seconds = slot->exposed_seconds,
            .count = slot->count,
            .flops_per_device = slot->flops,
            .bytes_per_device = slot->bytes,
        };
    }
}

void adv_account_kernel(struct adv_account *account, const struct adv_kernel_use *use)
{
    struct adv_ledger *ledger = account->ledger;
    if (!ledger) return;
    for (int i = 0; i < ledger->kernels_count; i++) {
        struct adv_kernel_use *known = &ledger->kernels[i];
        if (known->kernel != use->kernel || strcmp(known->shape, use->shape) != 0 ||
            strcmp(known->tile, use->tile) != 0)
            continue;
        known->count += use->count;
        return;
    }
    if (ledger->kernels_count < ADV_LIMIT_KERNELS) ledger->kernels[ledger->kernels_count++] = *use;
}
