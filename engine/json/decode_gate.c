#include "engine/json/decode_gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/json_read.h"

#define MEMBER(name, member, code, most) member,
#define CODE(name, member, code, most)   code,
#define MOST(name, member, code, most)   most,

const char *adv_gate_limit_member(enum adv_gate_limit limit)
{
    static const char *const members[] = {ADV_GATE_LIMIT_TABLE(MEMBER)};
    return members[limit];
}

const char *adv_gate_limit_code(enum adv_gate_limit limit)
{
    static const char *const codes[] = {ADV_GATE_LIMIT_TABLE(CODE)};
    return codes[limit];
}

const char *adv_gate_unlike_name(enum adv_gate_unlike unlike)
{
    static const char *const names[] = {"model", "sequence_length"};
    return names[unlike];
}

/* A string member into a name buffer; longer ones are a finding. */
static bool take_name(const json_t *object, const char *at, const char *member, enum adv_json_need need,
                      char name[ADV_LIMIT_NAME], adv_err *err)
{
    const char *value = NULL;
    if (!adv_json_string(object, at, member, need, &value, err)) return false;
    if (strlen(value) < ADV_LIMIT_NAME) {
        memcpy(name, value, strlen(value) + 1);
        return true;
    }
    ADV_REFUSE(err, ADV_AT(at, member), NULL, "longer than %d bytes", ADV_LIMIT_NAME - 1);
    return false;
}

static void decode_baseline(const json_t *baseline, struct adv_gate_request *request, adv_err *err)
{
    if (json_object_get(baseline, "run_id")) {
        (void)adv_json_known_members(baseline, "/baseline", ADV_JSON_NAMES("run_id"), err);
        (void)take_name(baseline, "/baseline", "run_id", ADV_JSON_REQUIRED, request->baseline_run_id, err);
        return;
    }
    (void)adv_json_known_members(baseline, "/baseline", ADV_JSON_NAMES("project", "label"), err);
    (void)take_name(baseline, "/baseline", "project", ADV_JSON_REQUIRED, request->baseline_project, err);
    (void)take_name(baseline, "/baseline", "label", ADV_JSON_REQUIRED, request->baseline_label, err);
}

static void decode_candidate(const json_t *candidate, struct adv_gate_request *request, adv_err *err)
{
    if (json_object_get(candidate, "run_id")) {
        (void)adv_json_known_members(candidate, "/candidate", ADV_JSON_NAMES("run_id"), err);
        (void)take_name(candidate, "/candidate", "run_id", ADV_JSON_REQUIRED, request->candidate_run_id, err);
        return;
    }
    const char *git_ref = json_string_value(json_object_get(candidate, "git_ref"));
    (void)snprintf(request->candidate_git_ref, ADV_LIMIT_NAME, "%s", git_ref ? git_ref : "");
    request->candidate_request = json_dumps(candidate, JSON_COMPACT);
    if (request->candidate_request)
        request->candidate_request_bytes = strlen(request->candidate_request);
    else
        (void)adv_err_add(err, ADV_E_MEMORY, "/candidate", NULL, "no memory for the candidate");
}

static void decode_limits(const json_t *limits, struct adv_gate_request *request, adv_err *err)
{
    static const double most[] = {ADV_GATE_LIMIT_TABLE(MOST)};
    const char *names[ADV_GATE_LIMITS + 2];
    for (int i = 0; i < ADV_GATE_LIMITS; i++) names[i] = adv_gate_limit_member((enum adv_gate_limit)i);
    names[ADV_GATE_LIMITS] = "must_fit";
    names[ADV_GATE_LIMITS + 1] = "must_compile";
    (void)adv_json_known_members(limits, "/limits", names, ADV_GATE_LIMITS + 2, err);
    for (int i = 0; i < ADV_GATE_LIMITS; i++)
        (void)adv_json_number(limits, "/limits", names[i], ADV_JSON_OPTIONAL, -1.0, most[i],
                              &request->limits_frac[i], err);
    (void)adv_json_bool(limits, "/limits", "must_fit", ADV_JSON_OPTIONAL, &request->must_fit, err);
    (void)adv_json_bool(limits, "/limits", "must_compile", ADV_JSON_OPTIONAL, &request->must_compile, err);
}

static void decode_unlike(const json_t *list, struct adv_gate_request *request, adv_err *err)
{
    for (struct adv_json_walk entry = {.in = list}; adv_json_next(&entry);) {
        const char *name = json_string_value(entry.value);
        bool known = false;
        for (int i = 0; i < ADV_GATE_UNLIKES && name; i++) {
            if (strcmp(name, adv_gate_unlike_name((enum adv_gate_unlike)i)) != 0) continue;
            request->may_differ[i] = known = true;
        }
        if (known) continue;
        ADV_REFUSE(err, ADV_AT_INDEX("/allow_unlike", entry.index), "\"model\", \"sequence_length\"",
                   "not one of what may differ");
    }
}

adv_code adv_decode_gate(const char *json, size_t json_bytes, struct adv_gate_request *request, adv_err *err)
{
    memset(request, 0, sizeof *request);
    for (int i = 0; i < ADV_GATE_LIMITS; i++) request->limits_frac[i] = (double)NAN;
    request->must_fit = true;
    ADV_JSON_OWN json_t *root = adv_json_body(
        json, json_bytes, ADV_JSON_NAMES("baseline", "candidate", "limits", "allow_unlike", "reports"), err);
    if (root) {
        (void)adv_json_bool(root, "", "reports", ADV_JSON_OPTIONAL, &request->reports, err);
        const json_t *baseline = adv_json_object(root, "", "baseline", ADV_JSON_REQUIRED, err);
        const json_t *candidate = adv_json_object(root, "", "candidate", ADV_JSON_REQUIRED, err);
        const json_t *limits = adv_json_object(root, "", "limits", ADV_JSON_OPTIONAL, err);
        const json_t *unlike = adv_json_array(root, "", "allow_unlike", ADV_JSON_OPTIONAL, err);
        if (baseline) decode_baseline(baseline, request, err);
        if (candidate) decode_candidate(candidate, request, err);
        if (limits) decode_limits(limits, request, err);
        decode_unlike(unlike, request, err);
    }
    if (err->code) adv_gate_request_free(request);
    return err->code;
}

void adv_gate_request_free(struct adv_gate_request *request)
{
    free(request->candidate_request);
    request->candidate_request = NULL;
}

adv_code adv_decode_run_id(const char *json, size_t json_bytes, char run_id[ADV_LIMIT_NAME], adv_err *err)
{
    ADV_JSON_OWN json_t *root = adv_json_body(json, json_bytes, ADV_JSON_NAMES("run_id"), err);
    if (root) (void)take_name(root, "", "run_id", ADV_JSON_REQUIRED, run_id, err);
    return err->code;
}
