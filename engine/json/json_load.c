/* json_load.c: see json_load.h */
#include "engine/json/json_load.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The text is handed over in pieces of this many bytes: so much is still read after an allocation failed. */
enum { PIECE_BYTES = 64 };

/* Upper bounds of what the library asks for after the first failure. A byte of the last pieces starts at most
 * one value (an object and its table of members: 200 bytes). Of the whole text, per byte: the buffer of a
 * word doubles once (2), the word is copied into a string and a name (2), every table of an array doubles
 * once (8: a pointer for two bytes of text, twice), every table of members (11: 16 bytes for six bytes, four
 * times). What is refused nevertheless is not the buffer of a word: that refusal the library understands. */
enum { SPARE_BYTES_PER_LAST_BYTE = 256, SPARE_BYTES_PER_BYTE = 24, SPARE_BYTES_AT_LEAST = 1024 };

/* The reading that is under way on this thread, and where the thread keeps the values it makes. */
struct reading {
    const char *text, *text_end;
    char *spare, *spare_free, *spare_end;
    bool failed;
    struct adv_arena *kept_in; /* NULL: values are given back one by one */
    bool refused;              /* that arena, or the system behind it, had no memory for a value */
};
static _Thread_local struct reading reading;

void adv_json_keep_in(struct adv_arena *arena)
{
    reading.kept_in = arena;
    reading.refused = false;
}

bool adv_json_keep_no_more(void)
{
    reading.kept_in = NULL;
    return !reading.refused;
}

static void *memory_of(size_t bytes)
{
    if (!reading.kept_in) return malloc(bytes);
    void *memory = adv_arena_bare(reading.kept_in, bytes);
    reading.refused |= !memory;
    return memory;
}

static void *take(size_t bytes)
{
    void *memory = reading.failed ? NULL : memory_of(bytes);
    if (memory || !reading.spare) return memory;
    reading.failed = true;
    const size_t rounded =
        (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    if (rounded > (size_t)(reading.spare_end - reading.spare_free)) return NULL;
    memory = reading.spare_free;
    reading.spare_free += rounded;
    return memory;
}

static void give(void *memory)
{
    if (reading.spare && (char *)memory >= reading.spare && (char *)memory < reading.spare_end) return;
    if (!reading.kept_in) free(memory);
}

/* Before any thread starts, hence before any value exists. */
__attribute__((constructor)) static void use_own_allocator(void)
{
    json_set_alloc_funcs(take, give);
}

static size_t next_piece(void *buffer, size_t buffer_bytes, void *data)
{
    struct reading *now = data;
    size_t bytes = (size_t)(now->text_end - now->text);
    if (bytes > PIECE_BYTES) bytes = PIECE_BYTES;
    if (bytes > buffer_bytes) bytes = buffer_bytes;
    if (now->failed) bytes = 0;
    memcpy(buffer, now->text, bytes);
    now->text += bytes;
    return bytes;
}

static void say_no_memory(json_error_t *error)
{
    if (!error) return;
    *error = (json_error_t){.line = -1, .column = -1, .text = "no memory"};
    error->text[JSON_ERROR_TEXT_LENGTH - 1] =
        (char)json_error_out_of_memory; /* where json_error_code looks */
}

json_t *adv_json_load(const char *text, size_t length_bytes, size_t flags, json_error_t *error)
{
    if (!text) text = "", length_bytes = 0; /* refused as any text that ends before a value */
    const size_t last_bytes = length_bytes < PIECE_BYTES ? length_bytes : PIECE_BYTES;
    const size_t spare_bytes =
        SPARE_BYTES_PER_LAST_BYTE * last_bytes + SPARE_BYTES_PER_BYTE * length_bytes + SPARE_BYTES_AT_LEAST;
    char *spare = malloc(spare_bytes);
    if (!spare) {
        say_no_memory(error);
        return NULL;
    }
    reading = (struct reading){.text = text,
                               .text_end = text + length_bytes,
                               .spare = spare,
                               .spare_free = spare,
                               .spare_end = spare + spare_bytes,
                               .kept_in = reading.kept_in,
                               .refused = reading.refused};
    json_t *value = json_load_callback(next_piece, &reading, flags, error);
    if (reading.failed) {
        json_decref(value);
        value = NULL;
        say_no_memory(error);
    }
    reading = (struct reading){.kept_in = reading.kept_in, .refused = reading.refused};
    free(spare);
    return value;
}

/* A value that is a word, a whole number or a string as it stands; NULL: it has to be read. */
static json_t *plain_value(const char *text)
{
    enum { MOST_DIGITS = 18 }; /* fewer than the largest integer has */
    const size_t length_bytes = strlen(text);
    if (strcmp(text, "true") == 0) return json_true();
    if (strcmp(text, "false") == 0) return json_false();
    if (text[0] >= '1' && text[0] <= '9' && length_bytes <= MOST_DIGITS &&
        strspn(text, "0123456789") == length_bytes)
        return json_integer(strtoll(text, NULL, 10));
    if (text[0] != '"' || length_bytes < 2 || text[length_bytes - 1] != '"') return NULL;
    for (size_t i = 1; i < length_bytes - 1; i++)
        if (text[i] < ' ' || text[i] == '"' || text[i] == '\\' || text[i] > '~') return NULL;
    return json_stringn(text + 1, length_bytes - 2);
}

json_t *adv_json_load_string(const char *text, size_t flags)
{
    json_t *plain = text && flags == JSON_DECODE_ANY ? plain_value(text) : NULL;
    if (plain) return plain;
    return adv_json_load(text, text ? strlen(text) : 0, flags, NULL);
}

const char *adv_json_warning(const json_t *estimate, const char *code)
{
    for (struct adv_json_walk warning = {.in = json_object_get(estimate, "warnings")};
         adv_json_next(&warning);) {
        const char *said = json_string_value(json_object_get(warning.value, "code"));
        const char *detail = json_string_value(json_object_get(warning.value, "detail"));
        if (said && strcmp(said, code) == 0) return detail ? detail : "";
    }
    return NULL;
}
