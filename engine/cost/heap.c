#include "engine/cost/heap.h"

#include <math.h>

#include "engine/base/units.h"

struct adv_heap adv_heap_at(const struct adv_cost *cost, double arguments, bool peels, enum adv_memory_at at)
{
    const struct adv_constants *k = cost->constants;
    const double frac = at == ADV_AT_LOSS ? k->loss_fragmentation_frac : k->heap_fragmentation_frac;
    const double limit_frac = peels ? k->peeled_pressed_limit_frac : k->pressed_limit_frac;
    return (struct adv_heap){
        .arguments = arguments,
        .limit = at == ADV_AT_LOSS ? (double)INFINITY : limit_frac * cost->chip->hbm_usable_bytes_per_device,
        .frac = frac,
        .more_frac = peels ? k->peeled_fragmentation_frac - frac : 0.0,
        .has_stacks = at != ADV_AT_UPDATE};
}

static double sum(const double *bytes, int count)
{
    double all = 0.0;
    for (int i = 0; i < count; i++) all += bytes[i];
    return all;
}

static double lost_bytes(const struct adv_heap *heap, double saved, double all)
{
    const double above = (heap->has_stacks ? all - saved : all) - heap->copies;
    return adv_min(heap->frac * above + heap->more_frac * (above - heap->shared) + heap->holes,
                   adv_max(0.0, heap->limit - heap->arguments - all));
}

double adv_heap_lost_bytes(const struct adv_heap *heap, const double *bytes, int count)
{
    return lost_bytes(heap, bytes[ADV_HEAP_SAVED], sum(bytes, count));
}

double adv_heap_peak(const struct adv_heap *heap, const double *bytes, int count)
{
    const double all = sum(bytes, count);
    return heap->arguments + (all + lost_bytes(heap, bytes[ADV_HEAP_SAVED], all));
}
