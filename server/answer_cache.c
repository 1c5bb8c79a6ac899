#include "server/answer_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "engine/base/hash.h"
#include "server/gzip.h"

#define BUCKETS_COUNT 4096 /* a power of two; 64 MiB hold some 3,000 answers of 20 KiB */

struct body {
    struct adv_cached cached; /* first: a pointer to one is a pointer to the other */
    int holders;              /* keys and readers */
    size_t bytes;
};

/* A question in its bucket and in the list by use. */
struct entry {
    struct entry *next;          /* in the bucket */
    struct entry *newer, *older; /* by use */
    struct body *body;
    uint64_t hash;
    struct adv_question_key key;
    char project[ADV_LIMIT_NAME];
    char text[];
};

struct adv_answer_cache {
    pthread_mutex_t lock;
    struct entry *buckets[BUCKETS_COUNT];
    struct entry *newest, *oldest;
    size_t used_bytes, limit_bytes;
    uint64_t seed, epoch;
};

struct adv_answer_cache *adv_answer_cache_new(size_t limit_bytes)
{
    struct adv_answer_cache *cache = calloc(1, sizeof *cache);
    if (!cache) return NULL;
    cache->limit_bytes = limit_bytes;
    if (getrandom(&cache->seed, sizeof cache->seed, 0) != (ssize_t)sizeof cache->seed) cache->seed = 1;
    (void)pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

/* From a start that nobody outside knows. Texts are compared as well. */
static uint64_t hash_of(const struct adv_answer_cache *cache, const struct adv_question_key *key)
{
    uint64_t hash = cache->seed ^ (uint64_t)(key->kind * 2 + (int)key->form);
    hash = adv_hash_bytes(hash, key->project, strlen(key->project));
    hash = adv_hash_bytes(hash, key->text, key->text_bytes);
    return hash ^ (hash >> 29);
}

/* ---- the rest runs with the lock held, up to the public functions ---- */

static void let_go(struct adv_answer_cache *cache, struct body *body)
{
    if (--body->holders > 0) return;
    cache->used_bytes -= body->bytes;
    free(body->cached.answer.json);
    free(body->cached.coded);
    free(body);
}

static void unlink_use(struct adv_answer_cache *cache, struct entry *entry)
{
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void link_newest(struct adv_answer_cache *cache, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static void drop(struct adv_answer_cache *cache, struct entry *entry)
{
    struct entry **at = &cache->buckets[entry->hash % BUCKETS_COUNT];
    while (*at != entry) at = &(*at)->next;
    *at = entry->next;
    unlink_use(cache, entry);
    cache->used_bytes -= sizeof *entry + entry->key.text_bytes;
    let_go(cache, entry->body);
    free(entry);
}

static struct entry *look_up(struct adv_answer_cache *cache, const struct adv_question_key *key,
                             uint64_t hash)
{
    for (struct entry *entry = cache->buckets[hash % BUCKETS_COUNT]; entry; entry = entry->next)
        if (entry->hash == hash && entry->key.kind == key->kind && entry->key.form == key->form &&
            entry->key.text_bytes == key->text_bytes && strcmp(entry->key.project, key->project) == 0 &&
            memcmp(entry->key.text, key->text, key->text_bytes) == 0)
            return entry;
    return NULL;
}

static void add(struct adv_answer_cache *cache, const struct adv_question_key *key, uint64_t hash,
                struct body *body)
{
    struct entry *entry = malloc(sizeof *entry + key->text_bytes);
    if (!entry) return;
    *entry =
        (struct entry){.body = body, .hash = hash, .key = *key, .next = cache->buckets[hash % BUCKETS_COUNT]};
    entry->key.project = entry->project;
    entry->key.text = memcpy(entry->text, key->text, key->text_bytes);
    (void)snprintf(entry->project, sizeof entry->project, "%s", key->project);
    body->holders++;
    cache->buckets[hash % BUCKETS_COUNT] = entry;
    cache->used_bytes += sizeof *entry + key->text_bytes;
    link_newest(cache, entry);
    while (cache->used_bytes > cache->limit_bytes && cache->oldest) drop(cache, cache->oldest);
}

/* ---- public ---- */

void adv_answer_cache_free(struct adv_answer_cache *cache)
{
    if (!cache) return;
    while (cache->oldest) drop(cache, cache->oldest); /* NOLINT(clang-analyzer-unix.Malloc): unlinked first */
    (void)pthread_mutex_destroy(&cache->lock);
    free(cache);
}

const struct adv_cached *adv_answer_cache_find(struct adv_answer_cache *cache,
                                               const struct adv_question_key *key)
{
    const uint64_t hash = hash_of(cache, key);
    const struct adv_cached *found = NULL;
    (void)pthread_mutex_lock(&cache->lock);
    struct entry *entry = look_up(cache, key, hash);
    if (entry) {
        unlink_use(cache, entry);
        link_newest(cache, entry);
        entry->body->holders++;
        found = &entry->body->cached;
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return found;
}

static struct body *body_of(const struct adv_cached *cached)
{
    struct body *body;
    /* ours, so it may be written to; NOLINTNEXTLINE(bugprone-sizeof-expression): the pointer is copied */
    memcpy(&body, &cached, sizeof body);
    return body;
}

void adv_answer_cache_release(struct adv_answer_cache *cache, const struct adv_cached *cached)
{
    if (!cached) return;
    (void)pthread_mutex_lock(&cache->lock);
    let_go(cache, body_of(cached));
    (void)pthread_mutex_unlock(&cache->lock);
}

uint64_t adv_answer_cache_epoch(struct adv_answer_cache *cache)
{
    (void)pthread_mutex_lock(&cache->lock);
    const uint64_t epoch = cache->epoch;
    (void)pthread_mutex_unlock(&cache->lock);
    return epoch;
}

static struct body *make_body(const struct adv_answer *answer)
{
    struct body *body = calloc(1, sizeof *body);
    if (!body) return NULL;
    body->holders = 1; /* the caller */
    body->cached.answer = *answer;
    body->cached.answer.wants_store = body->cached.answer.store_may_fail = false;
    body->cached.answer.label[0] = body->cached.answer.git_ref[0] = '\0';
    body->cached.answer.json = malloc(answer->json_bytes + 1);
    if (!body->cached.answer.json) {
        free(body);
        return NULL;
    }
    memcpy(body->cached.answer.json, answer->json, answer->json_bytes + 1);
    body->cached.coded = adv_gzip(answer->json, answer->json_bytes, ADV_GZIP_FAST, &body->cached.coded_bytes);
    body->bytes = sizeof *body + answer->json_bytes + body->cached.coded_bytes;
    adv_sha256_hex(answer->json, answer->json_bytes, body->cached.tag);
    return body;
}

void adv_answer_cache_alias(struct adv_answer_cache *cache, const struct adv_question_key *key,
                            const struct adv_cached *cached, uint64_t epoch)
{
    const uint64_t hash = hash_of(cache, key);
    (void)pthread_mutex_lock(&cache->lock);
    if (cache->epoch == epoch && !look_up(cache, key, hash)) add(cache, key, hash, body_of(cached));
    (void)pthread_mutex_unlock(&cache->lock);
}

const struct adv_cached *adv_answer_cache_keep(struct adv_answer_cache *cache,
                                               const struct adv_question_key *key,
                                               const struct adv_answer *answer, uint64_t epoch)
{
    if (answer->json_bytes >= cache->limit_bytes / 4) return NULL; /* one answer for all others: no */
    struct body *body = make_body(answer);
    if (!body) return NULL;
    (void)pthread_mutex_lock(&cache->lock);
    cache->used_bytes += body->bytes;
    (void)pthread_mutex_unlock(&cache->lock);
    adv_answer_cache_alias(cache, key, &body->cached, epoch);
    return &body->cached;
}

void adv_answer_cache_forget(struct adv_answer_cache *cache)
{
    (void)pthread_mutex_lock(&cache->lock);
    cache->epoch++;
    while (cache->oldest) drop(cache, cache->oldest); /* NOLINT(clang-analyzer-unix.Malloc): unlinked first */
    (void)pthread_mutex_unlock(&cache->lock);
}

size_t adv_answer_cache_bytes(struct adv_answer_cache *cache)
{
    (void)pthread_mutex_lock(&cache->lock);
    const size_t bytes = cache->used_bytes;
    (void)pthread_mutex_unlock(&cache->lock);
    return bytes;
}
