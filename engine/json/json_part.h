/* json_part.h: parts of a long JSON text, without making values of all the rest.
 *
 * A part is the place in the text where its value begins; NULL: there is none. For texts that the product has
 * written itself, such as stored answers: what is passed over is not checked, and of members with one name
 * the first counts. No text makes it read behind the text's end. Thread safe; allocates nothing but the
 * values of adv_json_part_load.
 */
#pragma once

#include "engine/json/json_load.h"

/* The member of an object, a part or a whole text. Its name is compared as it is written there, so it must
 * need no escapes. NULL also where `object` is NULL or no object. */
const char *adv_json_part_member(const char *object, const char *name);

/* The element of an array, from 0; NULL likewise. */
const char *adv_json_part_element(const char *array, int index);

/* The part as a value, for the caller to give back. NULL: there is none, no memory, or it is no JSON. */
json_t *adv_json_part_load(const char *part);
