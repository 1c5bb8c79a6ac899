#include "server/documents.h"

#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/base/embed.h"
#include "server/gzip.h"

#define BUNDLED "assets/" /* files of the web form whose names carry the digest of their bytes */

static const char *const collections[ADV_CATALOG_COLLECTIONS] = {"models", "chips", "topologies", "kernels",
                                                                 "keys"};

int adv_documents_collection(const char *name)
{
    for (int i = 0; i < ADV_CATALOG_COLLECTIONS; i++)
        if (strcmp(collections[i], name) == 0) return i;
    return -1;
}

static void seal(struct adv_document *document, const char *body, size_t body_bytes, char *owned)
{
    document->body = body;
    document->body_bytes = body_bytes;
    document->owned = owned;
    document->coded = adv_gzip(body, body_bytes, ADV_GZIP_ONCE, &document->coded_bytes);
    adv_sha256_hex(body, body_bytes, document->tag);
}

static adv_code make_openapi(struct adv_document *document, adv_err *err)
{
    const struct adv_embedded_file *file = &adv_embedded_openapi[0];
    char *json = NULL;
    adv_code code = adv_yaml_json((const char *)file->data, file->length_bytes, &json, err);
    if (!code) seal(document, json, strlen(json), json);
    return code;
}

static adv_code seal_web(struct adv_documents *documents, adv_err *err)
{
    while (adv_embedded_web[documents->web_count].name) documents->web_count++;
    documents->web = calloc((size_t)documents->web_count + 1, sizeof *documents->web);
    if (!documents->web) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the documents");
    for (int i = 0; i < documents->web_count; i++) {
        const struct adv_embedded_file *file = &adv_embedded_web[i];
        seal(&documents->web[i], (const char *)file->data, file->length_bytes, NULL);
        documents->web[i].lasts = strncmp(file->name, BUNDLED, sizeof BUNDLED - 1) == 0;
    }
    return ADV_OK;
}

adv_code adv_documents_make(const struct adv_catalog *catalog, struct adv_documents **documents, adv_err *err)
{
    struct adv_documents *made = calloc(1, sizeof *made);
    if (!made) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the documents");
    adv_code code = make_openapi(&made->openapi, err);
    if (!code) code = seal_web(made, err);
    for (int i = 0; i < ADV_CATALOG_COLLECTIONS && !code; i++) {
        struct adv_answer answer = {0};
        code = adv_catalog_json(catalog, collections[i], NULL, &answer, err);
        if (!code) seal(&made->collections[i], answer.json, answer.json_bytes, answer.json);
    }
    if (code)
        adv_documents_free(made);
    else
        *documents = made;
    return code;
}

static void free_document(struct adv_document *document)
{
    free(document->owned);
    free(document->coded);
}

void adv_documents_free(struct adv_documents *documents)
{
    if (!documents) return;
    free_document(&documents->openapi);
    for (int i = 0; i < documents->web_count && documents->web; i++) free_document(&documents->web[i]);
    for (int i = 0; i < ADV_CATALOG_COLLECTIONS; i++) free_document(&documents->collections[i]);
    free(documents->web);
    free(documents);
}
