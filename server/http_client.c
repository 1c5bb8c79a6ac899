#include "server/http_client.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "engine/base/text.h"

#define ANSWER_LIMIT_BYTES (64u * 1024u * 1024u)
#define CONNECT_LIMIT_S    10
#define NAP_MS             10 /* between looks at a connection in the making */

struct address {
    bool tls;
    char host[256], port[8], path[ADV_LIMIT_URL_BYTES];
};

static bool read_url(const char *url, struct address *address)
{
    address->tls = strncasecmp(url, "https://", 8) == 0;
    if (!address->tls && strncasecmp(url, "http://", 7) != 0) return false;
    const char *host = url + (address->tls ? 8 : 7);
    const bool bracket = *host == '[';
    const size_t length = bracket ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    if (length == 0 || length >= sizeof address->host || strpbrk(host, " \r\n@")) return false;
    (void)snprintf(address->host, sizeof address->host, "%.*s", (int)length, host);
    const char *rest = host + length;
    size_t port = *rest == ':' ? strspn(rest + 1, "0123456789") : 0;
    if (port >= sizeof address->port) return false;
    (void)snprintf(address->port, sizeof address->port, "%.*s", port ? (int)port : 3,
                   port           ? rest + 1
                   : address->tls ? "443"
                                  : "80");
    rest += *rest == ':' ? port + 1 : 0;
    size_t path = strlen(rest);
    while (path > 0 && rest[path - 1] == '/') path--;
    if (path >= sizeof address->path || (*rest && *rest != '/')) return false;
    (void)snprintf(address->path, sizeof address->path, "%.*s", (int)path, rest);
    return true;
}

static adv_code no_answer(const struct address *address, const char *what, adv_err *err)
{
    const char *data = NULL; /* of an unknown name only this says what is wrong */
    int flags = 0;
    const unsigned long first = ERR_peek_error(); /* the system's, where it is one */
    const unsigned long last = ERR_peek_last_error_all(NULL, NULL, NULL, &data, &flags);
    const char *reason = ERR_SYSTEM_ERROR(first)                          ? strerror(ERR_GET_REASON(first))
                         : data && *data && (flags & ERR_TXT_STRING) != 0 ? data
                                                                          : ERR_reason_error_string(last);
    return adv_err_add(err, ADV_E_IO, "", NULL, "%s port %s: %s%s%s", address->host, address->port, what,
                       reason ? ": " : "", reason ? reason : "");
}

/* After a call that gave nothing: true, try again; the stream does not block, so that every wait has an end.
 */
static bool may_retry(BIO *stream, time_t until)
{
    return BIO_should_retry(stream) && BIO_wait(stream, until, NAP_MS) == 1;
}

/* Whether the network has failed, or the time was over: a name that nobody knows and a certificate that is
 * not trusted stay so. */
static bool is_network_failure(void)
{
    const unsigned long first = ERR_peek_error();
    return first == 0 || ERR_SYSTEM_ERROR(first);
}

/* A connected stream; NULL with a finding, `unanswered` says whether another try may find one. */
static BIO *connect_to(const struct address *address, SSL_CTX *context, int timeout_s, bool *unanswered,
                       adv_err *err)
{
    struct address named = *address; /* OpenSSL's macros take names that they may write to */
    SSL *tls = NULL;
    ERR_clear_error();
    BIO *stream = address->tls ? BIO_new_ssl_connect(context) : BIO_new(BIO_s_connect());
    if (stream && address->tls) {
        BIO_get_ssl(stream, &tls);
        if (!tls || SSL_set1_host(tls, named.host) != 1 || SSL_set_tlsext_host_name(tls, named.host) != 1) {
            BIO_free_all(stream);
            stream = NULL;
        }
    }
    if (!stream) {
        (void)no_answer(address, "no memory for a connection", err);
        return NULL;
    }
    (void)BIO_set_conn_hostname(stream, named.host);
    (void)BIO_set_conn_port(stream, named.port);
    (void)BIO_set_nbio(stream, 1);
    const time_t until = time(NULL) + (timeout_s < CONNECT_LIMIT_S ? timeout_s : CONNECT_LIMIT_S);
    int connected = 0;
    do connected = (int)BIO_do_connect(stream);
    while (connected != 1 && may_retry(stream, until));
    if (connected == 1) return stream;
    *unanswered = is_network_failure();
    (void)no_answer(address, "nobody answers", err);
    BIO_free_all(stream);
    return NULL;
}

static bool write_all(BIO *stream, const char *bytes, size_t count, time_t until)
{
    while (count > 0) {
        const int written = BIO_write(stream, bytes, count > 1 << 20 ? 1 << 20 : (int)count);
        if (written <= 0 && !may_retry(stream, until)) return false;
        if (written <= 0) continue;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

static void read_all(BIO *stream, struct adv_text *into, time_t until)
{
    char buffer[16384];
    while (!into->overflow) {
        const int got = BIO_read(stream, buffer, sizeof buffer);
        if (got > 0)
            adv_text_append_bytes(into, buffer, (size_t)got);
        else if (!may_retry(stream, until))
            return;
    }
}

/* The value of a header of the head (up to `end`), or NULL. */
static const char *find_header(const char *head, const char *end, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line && line < end; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':') continue;
        const char *value = line + 3 + length;
        return value + strspn(value, " \t");
    }
    return NULL;
}

/* The same as text, up to a byte of `ends`; "" when there is none or it is too long. */
static void copy_header(const char *head, const char *end, const char *name, const char *ends, char *text,
                        size_t text_bytes)
{
    const char *value = find_header(head, end, name);
    const size_t length = value ? strcspn(value, ends) : 0;
    text[0] = '\0';
    if (length < text_bytes) (void)snprintf(text, text_bytes, "%.*s", (int)length, value ? value : "");
}

/* Joins the chunks of a body in place; false: they are none. */
static bool join_chunks(char *body, size_t *bytes)
{
    size_t from = 0, to = 0;
    for (;;) {
        char *end = NULL;
        const unsigned long length = strtoul(body + from, &end, 16);
        const char *line = strstr(body + from, "\r\n");
        if (end == body + from || !line || length > *bytes) return false;
        from = (size_t)(line - body) + 2;
        if (length == 0) break;
        if (from + length > *bytes) return false;
        memmove(body + to, body + from, length);
        to += length;
        from += length + 2;
        if (from > *bytes) return false;
    }
    body[to] = '\0';
    *bytes = to;
    return true;
}

/* The body takes the place of what was received. */
static bool take_answer(struct adv_text *received, struct adv_client_answer *answer)
{
    const char *end = received->data ? strstr(received->data, "\r\n\r\n") : NULL;
    if (received->overflow || !end || strncmp(received->data, "HTTP/1.", 7) != 0) return false;
    const char *status = strchr(received->data, ' ');
    const char *retry = find_header(received->data, end, "Retry-After");
    const char *coding = find_header(received->data, end, "Transfer-Encoding");
    const char *length = find_header(received->data, end, "Content-Length");
    answer->status = status ? atoi(status) : 0;
    answer->retry_after_s = retry ? atoi(retry) : 0;
    copy_header(received->data, end, "Content-Type", " \t;\r\n", answer->media_type,
                sizeof answer->media_type);
    copy_header(received->data, end, "Location", " \t\r\n", answer->location, sizeof answer->location);
    const size_t head_bytes = (size_t)(end - received->data) + 4;
    answer->body_bytes = received->length_bytes - head_bytes;
    const bool is_chunked = coding != NULL;
    const bool is_whole = is_chunked || !length || strtoull(length, NULL, 10) == answer->body_bytes;
    memmove(received->data, received->data + head_bytes, answer->body_bytes + 1);
    if (!is_whole || (is_chunked && !join_chunks(received->data, &answer->body_bytes)) ||
        answer->status < 100)
        return false;
    answer->body = received->data;
    *received = adv_text_empty(0);
    return true;
}

static adv_code exchange_with(BIO *stream, const struct address *address, const char *request,
                              size_t request_bytes, time_t until, struct adv_client_answer *answer,
                              adv_err *err)
{
    struct adv_text received = adv_text_empty(ANSWER_LIMIT_BYTES);
    bool good = write_all(stream, request, request_bytes, until);
    if (good) read_all(stream, &received, until);
    answer->unanswered = received.length_bytes == 0 && is_network_failure();
    good = good && take_answer(&received, answer);
    adv_text_free(&received);
    return good ? ADV_OK : no_answer(address, "the answer was cut off, or is not HTTP", err);
}

adv_code adv_client_ask(const char *url, const char *path, const char *token, const char *json,
                        const char *key, int timeout_s, struct adv_client_answer *answer, adv_err *err)
{
    struct address address;
    memset(answer, 0, sizeof *answer);
    if (strlen(url) >= ADV_LIMIT_URL_BYTES || !read_url(url, &address))
        return adv_err_add(err, ADV_E_INVALID, "", "http://host:port or https://host", "'%.200s' is no URL",
                           url);
    for (const char *at = token; at && *at; at++)
        if (*at <= ' ' || *at > '~')
            return adv_err_add(err, ADV_E_INVALID, "", "a line break at its end, from a file or a form, say",
                               "the token has a character that no token has");
    struct adv_text request = adv_text_empty(ANSWER_LIMIT_BYTES);
    adv_text_format(&request,
                    "%s %s%s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\nAccept: application/json\r\n",
                    json ? "POST" : "GET", address.path, path, address.host, address.port);
    if (token) adv_text_format(&request, "Authorization: Bearer %s\r\n", token);
    if (key) adv_text_format(&request, "Idempotency-Key: %s\r\n", key);
    if (json)
        adv_text_format(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(json));
    adv_text_append(&request, "\r\n");
    if (json) adv_text_append(&request, json);
    SSL_CTX *context = address.tls ? SSL_CTX_new(TLS_client_method()) : NULL;
    if (context) {
        (void)SSL_CTX_set_default_verify_paths(context);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
        SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF); /* the length tells */
    }
    BIO *stream = !request.overflow && (context || !address.tls)
                      ? connect_to(&address, context, timeout_s, &answer->unanswered, err)
                      : NULL;
    adv_code code = stream ? exchange_with(stream, &address, request.data, request.length_bytes,
                                           time(NULL) + timeout_s, answer, err)
                           : (err->code ? err->code : no_answer(&address, "no memory", err));
    BIO_free_all(stream);
    SSL_CTX_free(context);
    adv_text_free(&request);
    return code;
}
