#include "engine/json/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/decode_store.h"

#define WISH_ARENA_BYTES 4096 /* three names of less than 100 bytes */

static void copy_name(char copy[ADV_LIMIT_NAME], const char *name)
{
    (void)snprintf(copy, ADV_LIMIT_NAME, "%s", name ? name : "");
}

bool adv_question_read(const char *json, size_t json_bytes, struct adv_question *question)
{
    /* The project stays: it may have a calibration of its own. */
    static const char *const wishes[] = {"store", "label", "git_ref", "tags"};
    ADV_JSON_OWN json_t *root = NULL;
    adv_err err = adv_err_empty();
    memset(question, 0, sizeof *question);
    if (adv_json_parse(json, json_bytes, &root, &err)) return false;
    if (json_is_object(root)) {
        struct adv_arena arena;
        struct adv_store_wish wish;
        adv_arena_init(&arena, WISH_ARENA_BYTES);
        arena.first_bytes = WISH_ARENA_BYTES;
        adv_decode_store(root, &arena, &wish, &err);
        const json_t *store = json_object_get(root, "store");
        question->wants_store = wish.store;
        question->store_may_fail = json_is_string(store);
        copy_name(question->label, wish.label);
        copy_name(question->project, wish.project);
        copy_name(question->git_ref, wish.git_ref);
        adv_arena_free(&arena);
        for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) (void)json_object_del(root, wishes[i]);
        if (!err.code)
            question->text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    }
    question->text_bytes = question->text ? strlen(question->text) : 0;
    return question->text != NULL;
}

void adv_question_free(struct adv_question *question)
{
    free(question->text);
    question->text = NULL;
}

void adv_question_project_in(const char *json, size_t json_bytes, const char *member,
                             char project[ADV_LIMIT_NAME])
{
    ADV_JSON_OWN json_t *root = NULL;
    adv_err ignored = adv_err_empty();
    project[0] = '\0';
    if (adv_json_parse(json, json_bytes, &root, &ignored)) return;
    const json_t *request = json_object_get(root, member);
    copy_name(project, json_string_value(json_object_get(request, "project")));
}
