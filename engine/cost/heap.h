/* heap.h: what XLA's heap of temporaries loses between buffers.
 *
 * XLA gives each buffer the lowest place that is free when the program comes to it; replayed so, the buffers
 * of compiled steps need what XLA says within some percent, while the largest placed first would lose almost
 * nothing. Stacks of saved tensors come early and go late, one on the other; what comes and goes above them
 * leaves holes that the next buffers fill in part. Until the loss buffers mostly arrive, so little is lost.
 * Beside transfers more is: the median of compiled steps is twice that of others. A program that would be
 * over the limit only for its holes is packed anew: compiled steps at the limit lose a tenth of what others
 * do. XLA does so before the limit is reached, see pressed_limit_frac.
 */
#pragma once

#include "engine/cost/context.h"
#include "engine/cost/ledger.h"

/* The first of the bytes of a moment: stacks of saved tensors, under which there are no holes. */
enum { ADV_HEAP_SAVED = 0 };

struct adv_heap {
    double arguments, limit; /* bytes: outside the heap, and of both together from which XLA is pressed; at
                                the loss there is none, so that each kept tensor adds its own bytes there and
                                no more */
    double shared;           /* of what a step of the scan with several layers holds for the others of them */
    double more_frac;        /* lost besides, of all but that: keeping a tensor spares a part of it */
    double frac;             /* of what lies above the stacks, lost */
    double holes;            /* bytes of places that nothing fills, whatever else there is */
    double copies;           /* of stacks, which lie on them: nothing is lost below these either */
    bool has_stacks;
};

/* The heap at one moment of a step; `peels`: XLA takes an iteration out of the loops for transfers. */
struct adv_heap adv_heap_at(const struct adv_cost *cost, double arguments, bool peels, enum adv_memory_at at);

/* Of a heap that holds these buffers. */
double adv_heap_lost_bytes(const struct adv_heap *heap, const double *bytes, int count);

/* Arguments, these buffers and what is lost between them. */
double adv_heap_peak(const struct adv_heap *heap, const double *bytes, int count);
