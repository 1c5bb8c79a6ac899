/* json_load.h: JSON text to values, also when memory ends in the middle of a word.
 *
 * The reader of libjansson (2.14) ignores that the buffer of the current word could not grow, and then reads
 * and writes behind its end. Here every allocation of one reading that fails is served from a spare piece,
 * which was taken before; the text then ends at once and the reading fails. Nothing else in the product calls
 * json_load*. Thread safe.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "engine/base/arena.h"
#include "engine/base/code.h"

/* From now on all values that this thread makes lie in the arena and go with it: nobody gives them back, and
 * values made before are not touched. For large trees of which only their text is wanted. */
void adv_json_keep_in(struct adv_arena *arena);

/* No longer so. False: there was no memory for one of those values, and what was made of them is not whole.
 */
ADV_MUST_CHECK bool adv_json_keep_no_more(void);

/* Like json_loadb: a `text` of NULL is an empty one; `flags` and `error` (may be NULL) are the library's.
 * NULL with the code json_error_out_of_memory when memory ended. The caller gives the value back with
 * json_decref. */
json_t *adv_json_load(const char *text, size_t length_bytes, size_t flags, json_error_t *error);

/* The same for a string; NULL gives NULL. `flags` as above; errors are not told. */
json_t *adv_json_load_string(const char *text, size_t flags);

/* A reference that is given back where its block ends: ADV_JSON_OWN json_t *root = …; what outlives the block
 * takes a reference of its own. */
#define ADV_JSON_OWN __attribute__((cleanup(adv_json_give_back)))
static inline void adv_json_give_back(json_t **value)
{
    json_decref(*value);
}

/* The number of a member; NAN where there is none. */
static inline double adv_json_number_of(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* A walk through an array (or, with adv_json_next_member, an object); what is none has nothing to walk
 * through: for (struct adv_json_walk row = {.in = rows}; adv_json_next(&row);) … row.value … */
struct adv_json_walk {
    const json_t *in; /* may be NULL */
    json_t *value;    /* borrowed */
    const char *key;  /* of a member */
    size_t index, seen_count;
    void *member;
};
static inline bool adv_json_next(struct adv_json_walk *walk)
{
    walk->index = walk->seen_count++;
    return (walk->value = json_array_get(walk->in, walk->index)) != NULL;
}
static inline bool adv_json_next_member(struct adv_json_walk *walk)
{
    json_t *in = (json_t *)(uintptr_t)walk->in;
    walk->index = walk->seen_count++;
    walk->member = walk->index ? json_object_iter_next(in, walk->member) : json_object_iter(in);
    walk->key = walk->member ? json_object_iter_key(walk->member) : NULL;
    walk->value = walk->member ? json_object_iter_value(walk->member) : NULL;
    return walk->member != NULL;
}

/* The detail of the first warning of an estimate or answer that has the code, borrowed, "" when it has no
 * detail; NULL: there is no such warning. */
const char *adv_json_warning(const json_t *estimate, const char *code);
