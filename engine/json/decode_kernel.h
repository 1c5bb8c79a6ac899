/* decode_kernel.h: requests of POST /v1/kernels/simulate and /tune become a kernel, a shape, tiles and flags.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/json/decode_store.h"
#include "engine/json/json_read.h"
#include "engine/kernel/request.h"

/* Every member that is missing, unknown, mistyped or out of range (ADV_E_INVALID, ADV_E_RANGE) and every rule
 * of the kernel that the readable rest breaks (ADV_E_ILLEGAL, kernel/legal.h), at once; pointers are those of
 * the document. `with_tile`: simulate (tiles are needed, except where the kernel chooses them); otherwise
 * tune. `warnings`: what is legal at a price or not used; may be NULL. Group sizes live in `arena`. */
ADV_MUST_CHECK adv_code adv_decode_kernel_request(const struct adv_catalog *catalog, const json_t *root,
                                                  bool with_tile, struct adv_arena *arena,
                                                  struct adv_kernel_request *request, adv_err *err,
                                                  adv_err *warnings);
