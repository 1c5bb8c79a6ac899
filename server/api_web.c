#include <string.h>

#include "engine/base/embed.h"
#include "server/api.h"
#include "server/app.h"

/* No inline code, no other host: what the form needs and nothing else. */
#define CONTENT_POLICY                                                                                       \
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"}, {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},   {".svg", "image/svg+xml"},
    {".txt", "text/plain; charset=utf-8"},
};

static const struct adv_embedded_file *find(const char *path)
{
    const char *name = strcmp(path, "/") == 0 ? "index.html" : path + 1;
    for (const struct adv_embedded_file *file = adv_embedded_web; file->name; file++)
        if (strcmp(file->name, name) == 0) return file;
    return NULL;
}

bool adv_api_web_has(const char *path)
{
    return find(path) != NULL;
}

adv_code adv_api_web(struct adv_exchange *exchange, adv_err *err)
{
    const struct adv_embedded_file *file = find(exchange->path);
    if (!file)
        return adv_err_add(err, ADV_E_NOT_FOUND, "", NULL, "this program was built without the web form");
    const char *type = "application/octet-stream";
    size_t length = strlen(file->name);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t ending = strlen(types[i].ending);
        if (length > ending && strcmp(file->name + length - ending, types[i].ending) == 0)
            type = types[i].type;
    }
    adv_reply_header(exchange, "Content-Security-Policy", "%s", CONTENT_POLICY);
    adv_reply_header(exchange, "Referrer-Policy", "no-referrer");
    adv_reply_document(exchange, type, &exchange->app->documents->web[file - adv_embedded_web]);
    return ADV_OK;
}
