/* flags.h: the XLA flags that change a prediction, as tri-states: of a plan, and of a chip's recipe. */
#pragma once

#include <stdbool.h>

/* The XLA flags that change the prediction. Unset tri-states (-1) follow the chip's default. */
struct adv_flags {
    int scoped_vmem_limit_kib;                                   /* 0 = the chip's default */
    signed char sc_all_gather, sc_reduce_scatter, sc_all_reduce; /* SparseCore offload */
    signed char sc_2d_all_gather,
        sc_3d_all_gather;         /* of gathers over two, over three torus axes, beside it */
    signed char async_all_gather; /* xla_enable_async_all_gather */
    signed char cf_all_gather, cf_reduce_scatter, cf_all_reduce; /* async collective fusion */
    signed char latency_hiding_layer_scheduler, sc_aggregator;
    signed char data_parallel_overlap;      /* DCN gradient all-reduce overlap */
    signed char collective_matmul_disabled; /* windowed einsum off */
    signed char host_transfer_pipelining;   /* transfers of a layer run beside its neighbours, too */
    signed char host_offload_scheduling;    /* the HOST_OFFLOAD set: where a tensor goes to the host */
    signed char unused;                     /* in the place of padding: flags are compared as bytes */
};

_Static_assert(sizeof(struct adv_flags) == sizeof(int) + 16, "flags are compared as bytes: no padding");

/* What a chip's `ignored_flags` say of a flag: the compiler changes nothing by it, ever or where gathers span
 * several torus axes and the flag for so many is not set beside it. */
enum { ADV_FLAG_IGNORED = 1, ADV_FLAG_IGNORED_ALONE = 2 };

/* Whether the flag for gathers over so many torus axes is not set. One axis needs none. */
bool adv_flags_lack_axes(const struct adv_flags *flags, int axes);

/* All tri-states "as the chip's default". */
void adv_flags_unset(struct adv_flags *flags);

/* Takes over what `from` sets; what it leaves unset stays as it is. */
void adv_flags_overlay(struct adv_flags *flags, const struct adv_flags *from);
