#include "engine/json/decode_bodies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_answer.h"
#include "engine/json/json_read.h"

adv_code adv_decode_calibration(const char *json, size_t json_bytes, char project[ADV_LIMIT_NAME],
                                adv_err *err)
{
    const char *name = NULL;
    ADV_JSON_OWN json_t *root = adv_json_body(json, json_bytes, ADV_JSON_NAMES("project"), err);
    if (!root || !adv_json_string(root, "", "project", ADV_JSON_REQUIRED, &name, err)) return err->code;
    if (!*name || strlen(name) >= ADV_LIMIT_NAME)
        return adv_err_add(err, ADV_E_INVALID, "/project", NULL, "a project has 1 to %d bytes",
                           ADV_LIMIT_NAME - 1);
    memcpy(project, name, strlen(name) + 1);
    return err->code;
}

adv_code adv_decode_proof_request(const char *json, size_t json_bytes, struct adv_proof_request *request,
                                  adv_err *err)
{
    int mode = 0;
    *request = (struct adv_proof_request){.first_rank = 1, .last_rank = 1};
    ADV_JSON_OWN json_t *root = adv_json_body(json, json_bytes, ADV_JSON_NAMES("rank", "top", "mode"), err);
    if (!root) return err->code;
    const bool one =
        adv_json_int(root, "", "rank", ADV_JSON_OPTIONAL, 1, ADV_LIMIT_RANKED, &request->first_rank, err);
    if (one) request->last_rank = request->first_rank;
    if (adv_json_int(root, "", "top", ADV_JSON_OPTIONAL, 1, ADV_LIMIT_RANKED, &request->last_rank, err) &&
        one)
        ADV_REFUSE(err, "/top", "leave one of them out",
                   "rank names one plan and top the first ones: they exclude each other");
    (void)adv_json_choice(root, "", "mode", ADV_JSON_OPTIONAL, ADV_JSON_NAMES("assign", "whole"), &mode, err);
    request->whole = mode == 1;
    return err->code;
}

#define MOST_SECONDS      1e6 /* eleven days a step */
#define MOST_TOKENS_PER_S 1e9
#define MOST_BYTES        1e15
#define LEAST             1e-9

/* Whether a text begins like the shape, whose d's are digits; where it goes on then, else NULL. */
static const char *after_shape(const char *text, const char *shape)
{
    for (; *shape; shape++, text++)
        if (*shape == 'd' ? *text < '0' || *text > '9' : *text != *shape) return NULL;
    return text;
}

bool adv_looks_like_time(const char *text)
{
    const char *at = after_shape(text, "dddd-dd-dd"), *next;
    if (!at || !*at) return at != NULL;
    at = after_shape(at, "Tdd:dd");
    if (at && (next = after_shape(at, ":dd"))) {
        at = next;
        if ((next = after_shape(at, ".d"))) at = next + strspn(next, "0123456789");
    }
    if (!at || !*at || strcmp(at, "Z") == 0) return at != NULL;
    if (*at != '+' && *at != '-') return false;
    at = after_shape(at + 1, "dd");
    if (at && (next = after_shape(at, *at == ':' ? ":dd" : "dd"))) at = next;
    return at && !*at;
}

static void take_text(const json_t *root, const char *member, char *text, size_t size, adv_err *err)
{
    const char *value = NULL;
    if (!adv_json_string(root, "", member, ADV_JSON_REQUIRED, &value, err)) return;
    if (value[0] == '\0' || strlen(value) >= size)
        ADV_REFUSE(err, ADV_AT("", member), NULL, "%s has 1 to %zu bytes", member, size - 1);
    else
        memcpy(text, value, strlen(value) + 1);
}

adv_code adv_decode_measured(const char *json, size_t json_bytes, struct adv_measured *measured, adv_err *err)
{
    memset(measured, 0, sizeof *measured);
    measured->step_time_s = measured->tokens_per_s_per_chip = measured->hbm_bytes_per_device = (double)NAN;
    measured->step_time_p25_s = measured->step_time_p75_s = measured->step_time_mad_s = (double)NAN;
    ADV_JSON_OWN json_t *root = adv_json_body(
        json, json_bytes,
        ADV_JSON_NAMES("step_time_s", "tokens_per_s_per_chip", "hbm_bytes_per_device", "source", "at"), err);
    if (!root) return err->code;
    (void)adv_json_number(root, "", "step_time_s", ADV_JSON_REQUIRED, LEAST, MOST_SECONDS,
                          &measured->step_time_s, err);
    (void)adv_json_number(root, "", "tokens_per_s_per_chip", ADV_JSON_OPTIONAL, LEAST, MOST_TOKENS_PER_S,
                          &measured->tokens_per_s_per_chip, err);
    (void)adv_json_number(root, "", "hbm_bytes_per_device", ADV_JSON_OPTIONAL, 1.0, MOST_BYTES,
                          &measured->hbm_bytes_per_device, err);
    take_text(root, "source", measured->source, sizeof measured->source, err);
    take_text(root, "at", measured->at, sizeof measured->at, err);
    if (measured->at[0] && !adv_looks_like_time(measured->at))
        ADV_REFUSE(err, "/at", "2026-11-21 or 2026-11-21T05:00:00Z", "at is not a time");
    return err->code;
}

adv_code adv_decode_measured_plan(const char *response_json, size_t response_bytes, int rank,
                                  struct adv_measured_plan *plan, adv_err *err)
{
    struct adv_arena arena;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    struct adv_artifact_source *source;
    const adv_code code = adv_decode_answer(NULL, response_json, response_bytes, rank, &arena, &source, err);
    if (code == ADV_OK)
        *plan = (struct adv_measured_plan){.step_time_s = source->row.step_time_s,
                                           .step_time_low_s = source->row.step_time_low_s,
                                           .step_time_high_s = source->row.step_time_high_s,
                                           .tokens_per_s_per_chip = source->row.tokens_per_s_per_chip,
                                           .hbm_bytes_per_device = source->row.hbm_bytes_per_device,
                                           .hbm_limit_bytes_per_device = source->hbm_limit_bytes_per_device,
                                           .devices = source->devices,
                                           .chips = source->chips};
    adv_arena_free(&arena);
    return code;
}
