/* kernel_members.h: the members of `shape` and `tile` of kernel requests, as tables: where each is written,
 * its range, and which kernels need it. */
#ifndef ADV_JSON_KERNEL_MEMBERS_H
#define ADV_JSON_KERNEL_MEMBERS_H

#include "engine/json/decode_kernel.h"

enum adv_kernel_object { ADV_KERNEL_SHAPE, ADV_KERNEL_TILE };

/* Reads the members that `kernel` knows into `request`: unknown, missing, mistyped and out-of-range ones add
 * findings; a member that is refused keeps what `request` held. `object` may be NULL (nothing is read).
 * `needs_all`: members that the kernel needs must be there. */
void adv_kernel_members_read(enum adv_kernel kernel, enum adv_kernel_object which, const json_t *object,
                             bool needs_all, struct adv_kernel_request *request, adv_err *err);

/* The same when the kernel is not known: a member is judged as the first kernel that has it judges it, and
 * unknown only when none has it. */
void adv_kernel_members_read_any(enum adv_kernel_object which, const json_t *object,
                                 struct adv_kernel_request *request, adv_err *err);

/* Warns of members of `tile` that are read but belong to another kernel of the family; `warnings` may be
 * NULL.
 */
void adv_kernel_members_warn_unused(enum adv_kernel kernel, const json_t *tile, adv_err *warnings);

/* Gives the finding just added, that the object is missing or none, the members that `kernel` needs as hint.
 */
void adv_kernel_members_hint(enum adv_kernel kernel, enum adv_kernel_object which, adv_err *err);

/* The members of `kernel` for users: a list of {name, type, what, required, minimum, maximum}. */
json_t *adv_kernel_members_describe(enum adv_kernel kernel, enum adv_kernel_object which);

#endif
