/* in_order.h: items that are worked on by two threads and taken one after the other by the caller's, as if it
 * had done them all itself.
 *
 * The caller's thread does the item that is next in order (`direct`), or takes what is ready of it (`take`).
 * While a helper is at that item, and in the helper's thread, items ahead are worked on (`work`), each in a
 * slot that is its own until it was taken. Where neighbours have much in common, each thread gets a stretch
 * of its own (`ahead_from`). So `direct` and `take` see the items in order, one at a time; without a helper
 * every item is done by `direct`.
 */
#pragma once

#include <stdatomic.h>

#include "engine/base/crew.h"

enum { ADV_IN_ORDER_SLOTS = 16, ADV_IN_ORDER_WORKERS = 2 }; /* workers: 0 the caller's thread, 1 a helper */

struct adv_in_order {
    void *context;
    int count;
    int ahead_from; /* the item with which a helper starts, to go on to the last and then back from this one;
                       0 in a job of more items than slots */
    void (*work)(void *context, int worker, int slot, int item);
    bool (*take)(void *context, int slot, int item); /* false: nothing after this item is wanted */
    bool (*direct)(void *context, int item);         /* the same */
    bool (*over)(void *context); /* asked every few milliseconds of waiting: true = nothing is wanted */
    atomic_bool stop;            /* set at the end: what `work` is at is of no use any more */
};

void adv_in_order_run(struct adv_in_order *job, struct adv_crew *crew);
