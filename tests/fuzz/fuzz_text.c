/* Any bytes as what people paste: a script, YAML, a manifest, a candidate of a check. What is taken is a
 * document, makes a body of a check that is JSON, and a question in canonical form is its own canonical form.
 * A member that is found without reading the whole text is that of the whole text.
 */
#include "tests/fuzz/fuzz.h"

#include "engine/json/check_job.h"
#include "engine/json/decode_recipe.h"
#include "engine/json/decode_text.h"
#include "engine/json/json_part.h"
#include "engine/json/question.h"

static void read_text(const char *text, size_t size)
{
    const struct adv_recipe_wish wish = {.has_cluster = size % 2};
    json_t *root = NULL;
    struct adv_arena arena;
    adv_err err, warnings;
    adv_err_init(&err);
    adv_err_init(&warnings);
    adv_arena_init(&arena, 1u << 24);
    if (adv_decode_recipe(fuzz_catalog(), text, size, &wish, &arena, &root, &err, &warnings) == ADV_OK)
        FUZZ_PROMISE(root != NULL); /* of any type: the caller says what it wanted */
    else
        FUZZ_PROMISE(err.count > 0 && !root);
    json_decref(root);
    adv_arena_free(&arena);
}

static void make_check(const char *text, size_t size)
{
    const struct adv_check_spec spec = {
        .baseline_project = "p", .baseline_label = "l", .accelerator = size % 2 ? "v6e-16" : NULL};
    char *body = NULL;
    adv_err err;
    adv_err_init(&err);
    if (adv_check_body(&spec, text, size, &body, &err) == ADV_OK) {
        json_t *root = NULL;
        FUZZ_PROMISE(adv_json_parse_file_text(body, strlen(body), &root, &err) == ADV_OK);
        FUZZ_PROMISE(json_is_object(json_object_get(root, "candidate")));
        json_decref(root);
    } else {
        FUZZ_PROMISE(err.count > 0 && !body);
    }
    free(body);
}

static void ask_again(const char *text, size_t size)
{
    struct adv_question first, second;
    if (!adv_question_read(text, size, &first)) return;
    FUZZ_PROMISE(first.text && strlen(first.text) == first.text_bytes);
    FUZZ_PROMISE(adv_question_read(first.text, first.text_bytes, &second) ||
                 first.text_bytes > ADV_LIMIT_BODY_BYTES);
    FUZZ_PROMISE(strcmp(first.text, second.text) == 0 && !second.wants_store);
    adv_question_free(&first);
    adv_question_free(&second);
}

static void take_answer(const char *text, size_t size)
{
    struct adv_check_answer answer;
    if (adv_check_answer_read(text, size, &answer)) {
        FUZZ_PROMISE(answer.json && answer.markdown && answer.junit);
        adv_check_answer_free(&answer);
    }
    free(adv_check_problem_lines(text, size));
}

static void find_parts(const char *text, size_t size)
{
    json_t *root = adv_json_load(text, size, JSON_REJECT_DUPLICATES, NULL);
    for (struct adv_json_walk member = {.in = root}; adv_json_next_member(&member);) {
        if (strpbrk(member.key, "\"\\")) continue;
        const char *part = adv_json_part_member(text, member.key); /* NULL: the text writes it by an escape */
        json_t *found = adv_json_part_load(part);
        FUZZ_PROMISE(!part || json_equal(found, member.value));
        json_decref(found);
    }
    json_decref(root);
    for (int i = 0; i < 4; i++) json_decref(adv_json_part_load(adv_json_part_element(text, i)));
    json_decref(adv_json_part_load(adv_json_part_member(text, "model")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 65536) return 0;
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    read_text(text, size);
    make_check(text, size);
    ask_again(text, size);
    take_answer(text, size);
    find_parts(text, size);
    free(text);
    return 0;
}
