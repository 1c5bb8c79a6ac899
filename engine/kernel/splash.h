/* splash.h: what the splash kernels share: a step of a grid, the work of the whole, and their time. The
 * passes themselves are in splash_fwd.c and splash_bwd.c; adv_splash_time is in kernel.h. */
#pragma once

#include "engine/kernel/kernel.h"
#include "engine/kernel/splash_blocks.h"

/* One kernel of a device, its shape and tile already checked. */
struct adv_splash_call {
    const struct adv_kernel_machine *machine;
    enum adv_kernel kernel;
    const struct adv_attention_shape *shape;
    const struct adv_attention_tile *tile;
    const struct adv_attention_flags *flags;
};

/* Work of one kernel over all heads and sequences of a device, before overlap. Per core where a constant is.
 */
struct adv_splash_work {
    double vector_s, rescale_s; /* vector unit, beside the MXU */
    double mask_s;              /* vector unit, between two products: hides behind nothing */
    double mxu_s;
    double hbm_bytes; /* block traffic of the grid */
    double steps, steps_s;
    double fetches_s; /* latencies of the steps' block fetches */
    double cores;     /* that share the grid */
};

/* One step of a grid on one core, before overlap: closed forms and timelines are made of these. */
struct adv_splash_unit {
    double vector_s, rescale_s, mxu_s;
    double mask_s;          /* of a step whose tile needs a mask */
    bool mask_all;          /* unknown segments: every tile needs one */
    double step_s, carry_s; /* every step; and those that are not the first of their query block */
    double outer_s;         /* closing a query block: its residuals */
    double fetch_s;         /* latency of a step's block fetch: blocks are asked for one step ahead */
    double each_in_bytes, each_out_bytes;   /* fetched when the inner block changes */
    double outer_in_bytes, outer_out_bytes; /* once per outer block */
    bool keys_outside; /* dkv kernels: grid (key blocks, query blocks), every key block is written */
    bool keeps_blocks; /* forward: a key block equal to the last step's is not fetched again */
    int64_t block_q, block_kv;
    double cores;
};
/* The whole grid of `unit` steps in closed form. */
struct adv_splash_work adv_splash_sum(const struct adv_splash_unit *unit,
                                      const struct adv_attention_shape *shape);

/* Seconds the kernel computes, all its overlaps counted, and seconds its bytes take. */
double adv_splash_compute_s(double vector_s, double mxu_s, double mask_s);
double adv_splash_dma_s(const struct adv_kernel_machine *machine, double hbm_bytes);

/* Seconds the kernel waits for its blocks: what their bytes and latencies take beyond compute and steps. */
double adv_splash_stall_s(const struct adv_kernel_machine *machine, const struct adv_splash_work *work);

/* True when the kernel library is older than the mid-2026 rewrite of its layouts. */
bool adv_splash_is_old(const struct adv_attention_flags *flags);

/* A step of the call's grid, forward or backward. */
void adv_splash_unit_of(const struct adv_splash_call *call, struct adv_splash_unit *unit);
void adv_splash_fwd_unit(const struct adv_splash_call *call, struct adv_splash_unit *unit);
void adv_splash_bwd_unit(const struct adv_splash_call *call, struct adv_splash_unit *unit);

/* Adds to `time` what stands around the kernel: transposes of what goes in and out, and forward the slices of
 * the residuals, backward the sum of dQ's partials. */
void adv_splash_fwd_wrap(const struct adv_splash_call *call, struct adv_kernel_time *time);
void adv_splash_bwd_wrap(const struct adv_splash_call *call, struct adv_kernel_time *time);
