/* family.h: all that the rest of the program asks about a kernel, as one row per family of kernels.
 *
 * Kernels of one family read the same shape and tile. Each family is a constant, in family_*.c or in
 * the file of its kernel (xent.c holds all of one), and a row of ADV_KERNEL_FAMILIES; the functions
 * behind it look kernels up, and nobody else tells them apart. Functions are pure and thread safe; `request`
 * and `tile` are what the row's members say, `err` and `warnings` may be NULL unless it says otherwise.
 */
#pragma once

#include <stddef.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/kernel/legal_near.h"
#include "engine/kernel/request.h"
#include "engine/kernel/short_list.h"
#include "engine/kernel/timeline.h"
#include "engine/kernel/tune_choice.h"
#include "engine/kernel/vmem.h"

enum adv_member_kind {
    ADV_MEMBER_INT,
    ADV_MEMBER_TILE, /* INT, of a tile: which values are legal depends on the shape */
    ADV_MEMBER_SIZE, /* int64_t */
    ADV_MEMBER_NUMBER,
    ADV_MEMBER_BOOL,
    ADV_MEMBER_DTYPE,
    ADV_MEMBER_LAYOUT,
    ADV_MEMBER_STRATEGY, /* from here on: read after the others, by functions of their own */
    ADV_MEMBER_GROUPS,   /* group_sizes, a list of whole numbers, and group_distribution, a name */
    ADV_MEMBER_DISTRIBUTION,
};

/* A member of `shape` or `tile` as a request writes it. */
struct adv_kernel_member {
    const char *name;
    enum adv_member_kind kind;
    size_t offset;              /* in struct adv_kernel_request */
    double low, high;           /* of numbers */
    unsigned of, needed_by;     /* bits of enum adv_kernel: whose time it bears on, who cannot do without */
    const char *what, *same_as; /* for users; or the member of which this is another name */
};
struct adv_kernel_members {
    const struct adv_kernel_member *rows;
    int count;
};
#define ADV_KERNEL_AT(path)  offsetof(struct adv_kernel_request, path)
#define ADV_KERNEL_BIT(id)   (1u << ADV_KERNEL_##id)
#define ADV_KERNEL_EVERY     (~0u)
#define ADV_KERNEL_ROWS(row) (int)(sizeof(row) / sizeof *(row))
#define ADV_KERNEL_MEMBER(key, holds, at, least, most, kernels, needers, text)                               \
    {                                                                                                        \
        .name = (key), .kind = ADV_MEMBER_##holds, .offset = (at), .low = (least), .high = (most),           \
        .of = (kernels), .needed_by = (needers), .what = (text)                                              \
    }

/* One kernel of a family. */
struct adv_kernel_info {
    enum adv_kernel kernel;
    size_t measured;   /* offset in struct adv_constants: 1 where timings of it stand behind them; or: */
    const char *what;  /* for users */
    const char *rival; /* of XLA's: the kernel that computes the same with tiles to choose; NULL: none */
};
#define ADV_KERNEL_MEASURED(flag) offsetof(struct adv_constants, flag)
#define ADV_KERNEL_NEVER_MEASURED ((size_t)-1)

/* A tile as one of MaxText's keys. */
enum { ADV_KERNEL_KEYS = 8, ADV_SWEEP_DIFFERENCES = 4 };
struct adv_kernel_key {
    const char *use; /* which matmul of the layer the key means: "wi", "wo"; "attention" */
    char name[ADV_LIMIT_NAME];
    int value;
    const char *text; /* NULL: the number is the value */
};

struct adv_kernel_family {
    const struct adv_kernel_info *kernels;
    int kernels_count;
    struct adv_kernel_members shape, tile;

    /* The name of a kernel that XLA tiles itself: "its own attention"; tiles are then no choice of the
     * caller, and the members from `vmem_parts` down may be NULL. NULL: a kernel with tiles. */
    const char *operation;
    /* Why the kernel takes no notice of a tile that it is given; NULL: it does. The member may be NULL. */
    const char *(*own_tiles)(const struct adv_kernel_request *request);

    /* Shape and tile against the rules of the kernel, as legal.h; `tile` is NULL when there is none, sizes
     * that are not known are 0. NULL: no rules beyond the ranges of members. */
    void (*judge)(const struct adv_kernel_request *request, const struct adv_kernel_tile *tile, adv_err *err,
                  adv_err *warnings);
    adv_code (*time)(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                     const struct adv_kernel_tile *tile, struct adv_kernel_time *time, adv_err *err);

    /* The buffers of a tile; how many. */
    int (*vmem_parts)(const struct adv_chip *chip, const struct adv_kernel_request *request,
                      const struct adv_kernel_tile *tile, struct adv_vmem_part parts[ADV_VMEM_PARTS]);
    double vmem_limit_frac; /* of a core's VMEM: the limit where none is set; 0: the chip's default */
    /* The legal values of a tile member next to `wanted`; false: a shape decides nothing about it. */
    bool (*near)(const struct adv_kernel_request *request, const char *member, int64_t wanted,
                 struct adv_legal_values *values);
    adv_code (*timeline)(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         struct adv_timeline *timeline, adv_err *err);

    const char *space; /* what tune searches, for users */
    /* Shapes that no tile of the tuner's space cuts are findings. */
    adv_code (*tunable)(const struct adv_kernel_request *request, adv_err *err);
    /* MaxText's default tile; false: it is not legal for the shape. */
    bool (*standard)(const struct adv_kernel_request *request, struct adv_kernel_tile *tile);
    /* Of the family's tile in struct adv_kernel_tile; rankings are arrays of it. */
    size_t tile_offset, tile_bytes;
    /* Fills an array of it with the tuner's tiles, of equals the preferred one first; how many. */
    int (*list_tiles)(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                      bool wide, void *tiles);
    bool has_buffers; /* and each with 2 to ADV_TUNE_BUFFERS_MOST buffers of what is streamed */
    /* As short_list.h and tune_choice.h; both NULL: the fastest are listed and chosen. */
    int (*short_list)(const struct adv_ranking *ranking, struct adv_short_entry entries[ADV_SHORT_LIST]);
    int (*candidates)(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                      const struct adv_ranking *ranking,
                      struct adv_tile_candidate candidates[ADV_CHOICE_CANDIDATES]);
    /* Why the ranked tiles have the layouts they have: who decided, and a sentence. NULL: there are none. */
    const char *(*layouts)(const struct adv_kernel_request *request, const char **why);
    /* MaxText's keys of a tile, those of one use together; how many. NULL: it has none. */
    int (*maxtext_keys)(const struct adv_kernel_request *request, const struct adv_kernel_tile *tile,
                        struct adv_kernel_key keys[ADV_KERNEL_KEYS]);
    /* The part of a sweep's program between its imports and its tiles: defines `run` and `arguments`. */
    void (*sweep)(struct adv_text *text, const struct adv_kernel_request *request);
    const char *sweep_needs; /* Python packages beside tune-jax, each after a space */
    /* Sentences on how that program differs from the tuned kernel; how many. The member may be NULL. */
    int (*differences)(const struct adv_kernel_request *request, const char *lines[ADV_SWEEP_DIFFERENCES]);
};

/* All families, in the order in which a member of an unknown kernel is looked for. */
#define ADV_KERNEL_FAMILIES(X)  X(splash) X(gmm) X(matmul) X(xent) X(attention_xla) X(ragged_dot_xla)
#define ADV_KERNEL_FAMILY(name) extern const struct adv_kernel_family adv_family_##name;
ADV_KERNEL_FAMILIES(ADV_KERNEL_FAMILY)
#undef ADV_KERNEL_FAMILY

/* The rows of ADV_KERNEL_FAMILIES; and those of one kernel. */
const struct adv_kernel_family *const *adv_kernel_families(int *count);
const struct adv_kernel_family *adv_kernel_family_of(enum adv_kernel kernel);
const struct adv_kernel_info *adv_kernel_info_of(enum adv_kernel kernel);

/* Is there no tile to choose: XLA's own operation, or a kernel that picks its own? */
bool adv_kernel_tiles_itself(const struct adv_kernel_request *request);

/* Takes tile `i` of an array of the family's. */
static inline void adv_kernel_tile_take(const struct adv_kernel_family *family, const void *tiles, int i,
                                        struct adv_kernel_tile *tile)
{
    memcpy((char *)tile + family->tile_offset, (const char *)tiles + (size_t)i * family->tile_bytes,
           family->tile_bytes);
}

/* Is the member of a tile one that answers write? Other names, and switches that no tuner sets, are not. */
static inline bool adv_kernel_member_is_written(const struct adv_kernel_member *member,
                                                enum adv_kernel kernel)
{
    const bool sized = member->kind == ADV_MEMBER_INT || member->kind == ADV_MEMBER_TILE;
    return (sized || member->kind == ADV_MEMBER_LAYOUT) && !member->same_as && member->of & 1u << kernel;
}

/* Its value in `tile`: *text is NULL where the number is the value. */
static inline void adv_kernel_member_value(const struct adv_kernel_member *member,
                                           const struct adv_kernel_tile *tile, int *value, const char **text)
{
    memcpy(value, (const char *)tile + member->offset - offsetof(struct adv_kernel_request, tile),
           sizeof *value);
    const enum adv_layout layout = (enum adv_layout)value[0];
    *text = member->kind == ADV_MEMBER_LAYOUT ? adv_layout_name(layout) : NULL;
}

/* A number format as JAX calls it. */
static inline const char *adv_kernel_jax_dtype(enum adv_format format)
{
    if (format == ADV_FORMAT_F32) return "float32";
    if (format == ADV_FORMAT_FP8) return "float8_e4m3fn";
    return format == ADV_FORMAT_INT8 ? "int8" : "bfloat16";
}
