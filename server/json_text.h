/* json_text.h: writing JSON as text, and which bytes are text. Reading JSON is engine/json's.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/text.h"

bool adv_utf8_valid(const char *text);

/* Appends `value` as a JSON string with its quotes, NULL as null. Bytes that are not UTF-8 become U+FFFD. */
void adv_json_text_quote(struct adv_text *text, const char *value);

/* Appends `,"name":` (without the comma right after an opening bracket) and then the value. */
void adv_json_text_string(struct adv_text *text, const char *name, const char *value);
void adv_json_text_raw(struct adv_text *text, const char *name, const char *json); /* NULL as null */

/* Appends `object` (a JSON object with or without trailing blanks) with `members` ("\"a\":1,\"b\":2") added
 * at its end. */
void adv_json_text_extend(struct adv_text *text, const char *object, size_t object_bytes,
                          const char *members);
