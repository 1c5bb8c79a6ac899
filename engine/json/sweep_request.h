/* sweep_request.h: POST /v1/sweeps: many requests of one kind, listed or as a grid.
 *
 * {"kind": "estimate"|"advise"|"simulate"|"tune", "requests": [{…}, …]} or, instead of requests,
 * "grid": {"base": {…}, "axes": {"/config/remat_policy": [value, …], …}}: one request for every combination
 * of values, each put into the base at its JSON pointer; the last axis varies fastest. No axis lies in
 * another. Optional "project" and "label".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/advise.h"
#include "engine/base/err.h"

#define ADV_LIMIT_SWEEP_ITEMS 10000 /* requests of one sweep; an estimate takes 1 ms */
#define ADV_LIMIT_SWEEP_AXES  16
#define ADV_LIMIT_SWEEP_BYTES (16 * 1024 * 1024) /* of all of them together; 10,000 of 1.6 KiB */

struct adv_sweep_request {
    enum adv_request_kind kind;
    char project[ADV_LIMIT_NAME], label[ADV_LIMIT_NAME]; /* "" when not given */
    int items_count;
    char **items; /* each a JSON object as text */
    char *list;   /* all of them as one JSON array */
    bool is_grid;
    int axes_count; /* of the grid, as the next: where its values are put, JSON pointers */
    char axes[ADV_LIMIT_SWEEP_AXES][ADV_LIMIT_POINTER];
    int values_counts[ADV_LIMIT_SWEEP_AXES]; /* of each axis */
};

/* Findings name the member; those of a listed request that is no object its place. Whether the requests can
 * be answered is not looked at. On error nothing is to be freed. Thread safe. */
ADV_MUST_CHECK adv_code adv_sweep_request_read(const char *json, size_t json_bytes,
                                               struct adv_sweep_request *request, adv_err *err);
void adv_sweep_request_free(struct adv_sweep_request *request);

/* What was found in item `item`, at the places of the sweep that say it: of a grid, the item's values of the
 * axes or else the base. */
void adv_sweep_request_point(const struct adv_sweep_request *request, int item, adv_err *err);

/* The item of a grid that has the same values as `item`, but on `axis` the value at `place`. */
int adv_sweep_request_item(const struct adv_sweep_request *request, int item, int axis, int place);

/* The name of the kind, as in "kind". */
const char *adv_sweep_kind_name(enum adv_request_kind kind);
/* The kind of a name that adv_sweep_kind_name gave. */
enum adv_request_kind adv_sweep_kind(const char *name);
