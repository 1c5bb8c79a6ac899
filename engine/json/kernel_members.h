/* kernel_members.h: reads and describes the members of `shape` and `tile` of kernel requests, which the
 * family of the kernel lists (kernel/family.h). */
#pragma once

#include "engine/json/json_read.h"
#include "engine/kernel/family.h"

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

/* Unsets switches of the shape that the kernel has no use for, and warns of them. */
void adv_kernel_members_drop_unused(enum adv_kernel kernel, struct adv_kernel_request *request,
                                    adv_err *warnings);

/* Has the shape a member of that kind? */
bool adv_kernel_members_have(enum adv_kernel kernel, enum adv_member_kind kind);

/* Members that are there by two names are findings; the second when the kernel is not known. */
void adv_kernel_members_judge_names(enum adv_kernel kernel, enum adv_kernel_object which,
                                    const json_t *object, adv_err *err);
void adv_kernel_members_judge_names_any(enum adv_kernel_object which, const json_t *object, adv_err *err);

/* Findings from `from` on about a tile member that the request gave by its other name are renamed to that
 * name. */
void adv_kernel_members_rename(enum adv_kernel kernel, const json_t *tile, adv_err *findings, int from);

/* Gives the finding just added, that the object is missing or none, the members that `kernel` needs as hint.
 */
void adv_kernel_members_hint(enum adv_kernel kernel, enum adv_kernel_object which, adv_err *err);

/* The members of `kernel` for users: a list of {name, type, what, required, minimum, maximum}. */
json_t *adv_kernel_members_describe(enum adv_kernel kernel, enum adv_kernel_object which);
