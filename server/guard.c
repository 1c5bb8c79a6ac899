#include "server/guard.h"

#include <string.h>
#include <strings.h>

bool adv_guard_is_token(const char *text, size_t length)
{
    static const char allowed[] =
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    size_t good = 0;
    while (good < length && text[good] && strchr(allowed, text[good])) good++;
    return length > 0 && good == length;
}

int adv_guard_hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') return digit - '0';
    const char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool has_blank(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f) return true;
    return false;
}

void adv_guard_init(struct adv_guard *guard)
{
    memset(guard, 0, sizeof *guard);
    guard->content_length_bytes = -1;
}

static void refuse(struct adv_guard *guard, const char *reason)
{
    if (!guard->reason) guard->reason = reason;
}

static void read_content_length(struct adv_guard *guard, const char *value)
{
    size_t length = strlen(value);
    if (guard->content_length_count++) refuse(guard, "more than one Content-Length");
    if (length == 0 || length > 18 || strspn(value, "0123456789") != length) {
        refuse(guard, "Content-Length is not a decimal number");
        return;
    }
    int64_t bytes = 0;
    for (; *value; value++) bytes = bytes * 10 + (*value - '0');
    guard->content_length_bytes = bytes;
}

static void read_single(struct adv_guard *guard, const char *name)
{
#define ROW(text)                                                                                            \
    {                                                                                                        \
        text, "more than one " text                                                                          \
    }
    static const struct {
        const char *name, *reason;
    } singles[] = {ROW("Authorization"), ROW("Content-Type"),    ROW("Idempotency-Key"), ROW("Last-Event-ID"),
                   ROW("Origin"),        ROW("Request-Timeout"), ROW("Sec-Fetch-Site")};
#undef ROW
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        if (strcasecmp(name, singles[i].name) != 0) continue;
        if (guard->singles & 1u << i) refuse(guard, singles[i].reason);
        guard->singles |= 1u << i;
    }
}

void adv_guard_header(struct adv_guard *guard, const char *name, const char *value)
{
    if (!adv_guard_is_token(name, strlen(name)))
        refuse(guard, "a header name has a character that is not allowed");
    if (!value) value = "";
    guard->head_bytes += (int64_t)(strlen(name) + strlen(value) + sizeof ": \r\n" - 1);
    if (strpbrk(value, "\r\n")) refuse(guard, "a header value is folded over lines");
    if (strcasecmp(name, "Content-Length") == 0) {
        read_content_length(guard, value);
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        if (guard->transfer_encoding_count++) refuse(guard, "more than one Transfer-Encoding");
        if (strcasecmp(value, "chunked") == 0)
            guard->chunked = true;
        else
            refuse(guard, "the only Transfer-Encoding understood is chunked");
    } else if (strcasecmp(name, "Host") == 0) {
        if (guard->host_count++) refuse(guard, "more than one Host");
    } else {
        read_single(guard, name);
    }
}

const char *adv_guard_finish(struct adv_guard *guard, const char *method, const char *target,
                             const char *version)
{
    if (!adv_guard_is_token(method, strlen(method)))
        refuse(guard, "the method has a character that is not allowed");
    bool is_1_1 = strcmp(version, "HTTP/1.1") == 0;
    if (!is_1_1 && strcmp(version, "HTTP/1.0") != 0)
        refuse(guard, "the version is neither HTTP/1.1 nor HTTP/1.0");
    if (is_1_1 && guard->host_count == 0) refuse(guard, "Host is missing");
    if (!is_1_1 && guard->transfer_encoding_count) refuse(guard, "HTTP/1.0 has no Transfer-Encoding");
    if (guard->content_length_count && guard->transfer_encoding_count)
        refuse(guard, "Content-Length beside Transfer-Encoding");
    guard->head_bytes += (int64_t)strlen(target);
    if (target[0] != '/') refuse(guard, "the request target does not start with /");
    if (has_blank(target)) refuse(guard, "the request target has a blank or a control character");
    if (strstr(target, "%00")) refuse(guard, "the request target has a NUL");
    return guard->reason;
}
