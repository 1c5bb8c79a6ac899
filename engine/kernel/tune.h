/* tune.h: what the tuners share: a ranking, the tile to name next, a refusal. Private to kernel/tune*.c. */
#pragma once

#include "engine/kernel/kernel.h"
#include "engine/kernel/request.h"
#include "engine/kernel/vmem.h"

/* The k best so far, best first. */
struct adv_tune_best {
    int top_k, count;
    struct adv_kernel_time *times;
};

/* Where `time_s` belongs among the best, or -1. Makes room; the caller stores tile and time there. */
int adv_tune_insert(struct adv_tune_best *best, double time_s, size_t tile_bytes, char *tiles);

/* Does the kernel gain from more than two buffers of what it streams? The transposed grouped matmul on arrays
 * of 256: 51 of 74 published winners of tpu7x and v6e take all that fit, up to four, and 13 one less; none of
 * v5p and v5e takes more than two. Others have two almost always (231 of 248). */
enum { ADV_TUNE_BUFFERS_MOST = 4 };
bool adv_tune_likes_buffers(const struct adv_kernel_machine *machine, enum adv_kernel kernel);

/* Is a tile that needs limit_kib and takes time_s the one to name next? best_kib INFINITY: none so far. */
bool adv_tune_is_next(const struct adv_kernel_machine *machine, double limit_kib, double time_s,
                      double than_s, double best_kib, double best_s);

/* Why no tile of a space fits. */
struct adv_tune_refusal {
    bool wide_fits;         /* the wide space has one that does */
    const char *other_hint; /* what helps when no limit does; may be NULL */
    double limit_bytes;
};

/* ADV_E_ILLEGAL: names the parts' sum, the largest of them, and a limit or a space that would do. `parts` are
 * those of the tile that needs least. */
adv_code adv_tune_refuse(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                         const struct adv_tune_refusal *refusal, const struct adv_vmem_part *parts,
                         int parts_count, adv_err *err);

/* The smallest larger limit under which tuning finds something at least a thousandth faster than `than_s`,
 * and what: of the tiles of the tuner's space that do not fit, grouped matmuls' with every number of buffers,
 * the one with the lowest limit (the fastest of those) that the device has VMEM for. False: there is none, or
 * the shape is not legal. */
bool adv_splash_next_better(const struct adv_kernel_machine *machine,
                            const struct adv_kernel_request *request, double than_s,
                            struct adv_kernel_tile *tile, struct adv_kernel_time *time, double *limit_kib);
bool adv_gmm_next_better(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         double than_s, struct adv_kernel_tile *tile, struct adv_kernel_time *time,
                         double *limit_kib);
