#include "server/raw_guard.h"

#include <string.h>
#include <strings.h>

#include "server/guard.h"

static void refuse(struct adv_raw_guard *guard, const char *reason)
{
    if (!guard->reason) guard->reason = reason;
}

static void enter(struct adv_raw_guard *guard, enum adv_raw_state state)
{
    guard->state = state;
    guard->line_bytes = guard->name_bytes = guard->value_bytes = 0;
    guard->in_value = false;
}

/* A header line has just ended: the two that say how long the body is. */
static void end_field(struct adv_raw_guard *guard)
{
    static const char length_name[] = "content-length", coding_name[] = "transfer-encoding";
    guard->name[guard->name_bytes] = guard->value[guard->value_bytes] = '\0';
    while (guard->value_bytes > 0 && strchr(" \t", guard->value[guard->value_bytes - 1]))
        guard->value[--guard->value_bytes] = '\0';
    if (!guard->in_value) {
        refuse(guard, "a header line has no colon");
    } else if (strcasecmp(guard->name, coding_name) == 0) {
        if (guard->chunked) refuse(guard, "more than one Transfer-Encoding");
        if (strcasecmp(guard->value, "chunked") != 0)
            refuse(guard, "the only Transfer-Encoding understood is chunked");
        guard->chunked = true;
    } else if (strcasecmp(guard->name, length_name) == 0) {
        const size_t digits = strspn(guard->value, "0123456789");
        if (guard->lengths_count++ > 0) refuse(guard, "more than one Content-Length");
        if (digits == 0 || digits > 18 || digits != guard->value_bytes)
            refuse(guard, "Content-Length is not a decimal number");
        guard->body_bytes = 0;
        for (size_t i = 0; i < digits && i < 18; i++)
            guard->body_bytes = guard->body_bytes * 10 + (uint64_t)(guard->value[i] - '0');
    }
}

static void end_head(struct adv_raw_guard *guard)
{
    if (guard->chunked && guard->lengths_count > 0) refuse(guard, "Content-Length beside Transfer-Encoding");
    guard->left_bytes = guard->body_bytes;
    if (guard->chunked)
        enter(guard, ADV_RAW_CHUNK_LINE);
    else
        enter(guard, guard->body_bytes > 0 ? ADV_RAW_BODY : ADV_RAW_BEFORE);
    guard->chunked = false;
    guard->lengths_count = 0;
    guard->body_bytes = guard->trailer_bytes = 0;
}

static void end_chunk_line(struct adv_raw_guard *guard)
{
    guard->left_bytes = 0;
    size_t digits = 0;
    for (; digits < guard->value_bytes && adv_guard_hex_digit(guard->value[digits]) >= 0; digits++)
        guard->left_bytes = guard->left_bytes * 16 + (uint64_t)adv_guard_hex_digit(guard->value[digits]);
    const bool ends = digits == guard->value_bytes || strchr("; \t", guard->value[digits]);
    if (digits == 0 || digits > 15 || !ends) refuse(guard, "the length of a chunk is not a number");
    enter(guard, guard->left_bytes > 0 ? ADV_RAW_CHUNK : ADV_RAW_TRAILER);
}

static void end_line(struct adv_raw_guard *guard)
{
    const bool empty = guard->line_bytes == 0;
    switch (guard->state) {
    case ADV_RAW_LINE:
        enter(guard, ADV_RAW_FIELD);
        break;
    case ADV_RAW_FIELD:
        if (empty) {
            end_head(guard);
        } else {
            end_field(guard);
            enter(guard, ADV_RAW_FIELD);
        }
        break;
    case ADV_RAW_CHUNK_LINE:
        end_chunk_line(guard);
        break;
    case ADV_RAW_TRAILER:
        if (!empty && !guard->in_value) refuse(guard, "a header line has no colon");
        enter(guard, empty ? ADV_RAW_BEFORE : ADV_RAW_TRAILER);
        break;
    case ADV_RAW_CHUNK: /* the CR LF behind it */
        enter(guard, ADV_RAW_CHUNK_LINE);
        break;
    case ADV_RAW_BEFORE:
    case ADV_RAW_BODY:
        break;
    }
}

/* A byte of a line, not of its end. */
static void take_byte(struct adv_raw_guard *guard, char byte)
{
    const bool starts = guard->line_bytes++ == 0;
    const bool blank = byte == ' ' || byte == '\t';
    if (byte == '\0') refuse(guard, "the head has a NUL");
    if (guard->state == ADV_RAW_BEFORE) guard->state = ADV_RAW_LINE;
    if (guard->state == ADV_RAW_CHUNK) refuse(guard, "a chunk is longer than it says");
    if (guard->state == ADV_RAW_FIELD || guard->state == ADV_RAW_TRAILER) {
        if (starts && blank) refuse(guard, "a header is folded over lines");
        if (!guard->in_value && byte == ':') {
            if (starts) refuse(guard, "a header has no name");
            guard->in_value = true;
            return;
        }
        if (!guard->in_value && !adv_guard_is_token(&byte, 1))
            refuse(guard, "a header name has a character that is not allowed");
    }
    if (guard->state == ADV_RAW_TRAILER && ++guard->trailer_bytes > ADV_LIMIT_TRAILER_BYTES)
        refuse(guard, "the trailer is too long");
    if (guard->state == ADV_RAW_CHUNK_LINE && guard->line_bytes > ADV_LIMIT_CHUNK_LINE_BYTES)
        refuse(guard, "the line of a chunk is too long");
    if (guard->state == ADV_RAW_FIELD && !guard->in_value && guard->name_bytes + 1 < ADV_LIMIT_RAW_NAME_BYTES)
        guard->name[guard->name_bytes++] = byte;
    const bool kept =
        guard->state == ADV_RAW_CHUNK_LINE || (guard->in_value && !(blank && guard->value_bytes == 0));
    if (kept && guard->value_bytes + 1 < ADV_LIMIT_RAW_VALUE_BYTES) guard->value[guard->value_bytes++] = byte;
}

static void take_line_byte(struct adv_raw_guard *guard, char byte)
{
    if (guard->after_cr) {
        guard->after_cr = false;
        if (byte == '\n')
            end_line(guard);
        else
            refuse(guard, "a carriage return without a line feed");
    } else if (byte == '\r') {
        guard->after_cr = true;
    } else if (byte == '\n') {
        refuse(guard, "a line feed without a carriage return");
    } else {
        take_byte(guard, byte);
    }
}

bool adv_raw_guard_feed(struct adv_raw_guard *guard, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && !guard->reason;) {
        if ((guard->state != ADV_RAW_BODY && guard->state != ADV_RAW_CHUNK) || guard->left_bytes == 0) {
            take_line_byte(guard, bytes[i++]);
            continue;
        }
        const size_t there = count - i;
        const size_t taken = guard->left_bytes < there ? (size_t)guard->left_bytes : there;
        guard->left_bytes -= taken;
        i += taken;
        if (guard->left_bytes == 0 && guard->state == ADV_RAW_BODY) enter(guard, ADV_RAW_BEFORE);
    }
    return guard->reason == NULL;
}
