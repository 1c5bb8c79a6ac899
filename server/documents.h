/* documents.h: answers that never change while the daemon runs, made once at its start, coded and
 * hashed: the OpenAPI document, the catalog's lists, the web form's files. Const afterwards, shared by all
 * threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/catalog/catalog.h"
#include "server/sha256.h"

struct adv_document {
    const char *body;
    size_t body_bytes;
    char *coded; /* in gzip; NULL = it gains nothing */
    size_t coded_bytes;
    char *owned;              /* the body where it was malloc'ed */
    bool lasts;               /* its name carries the digest of its bytes: clients may keep it for good */
    char tag[ADV_SHA256_HEX]; /* entity tag: the digest of the body */
};

struct adv_documents {
    struct adv_document openapi;
    struct adv_document *web; /* the form's files, in their order */
    int web_count;
#define ADV_CATALOG_COLLECTIONS 5
    struct adv_document collections[ADV_CATALOG_COLLECTIONS];
};

/* The index of a collection ("models", …) by its name; -1: there is none. */
int adv_documents_collection(const char *name);

ADV_MUST_CHECK adv_code adv_documents_make(const struct adv_catalog *catalog,
                                           struct adv_documents **documents, adv_err *err);
void adv_documents_free(struct adv_documents *documents); /* NULL is fine */
