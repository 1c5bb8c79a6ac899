/* json_text.h: writing JSON as text, which bytes are text, and names of clients in Markdown and XML. Reading
 * JSON is engine/json's. */
#pragma once

#include <stdbool.h>

#include "engine/base/text.h"

bool adv_utf8_valid(const char *text);

/* Appends `value` as a JSON string with its quotes, NULL as null. Bytes that are not UTF-8 become U+FFFD. */
void adv_json_text_quote(struct adv_text *text, const char *value);

/* Appends `,"name":` (without the comma right after an opening bracket) and then the value. */
void adv_json_text_string(struct adv_text *text, const char *name, const char *value);
void adv_json_text_raw(struct adv_text *text, const char *name, const char *json); /* NULL as null */
void adv_json_text_number(struct adv_text *text, const char *name, double value);  /* not finite as null */
void adv_json_text_bool(struct adv_text *text, const char *name, bool value);

/* Appends `object` (a JSON object with or without trailing blanks) with `members` ("\"a\":1,\"b\":2") added
 * at its end. */
void adv_json_text_extend(struct adv_text *text, const char *object, size_t object_bytes,
                          const char *members);

/* Append `value` (NULL: nothing) so that nothing in it is markup; control characters become blanks. Markdown:
 * the bytes among `marks` are escaped. XML: as the value of an attribute. */
#define ADV_MARKDOWN_MARKS "|\\<>`*_[]"
void adv_markdown_text(struct adv_text *text, const char *value, const char *marks);
void adv_xml_text(struct adv_text *text, const char *value);
