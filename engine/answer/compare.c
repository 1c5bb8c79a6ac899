/* compare.c: stored answers side by side (adv_compare_json of engine/advise.h). */
#include <math.h>
#include <string.h>

#include "engine/answer/answer.h"
#include "engine/json/encode_common.h"
#include "engine/json/json_load.h"

enum { COMPARE_RUNS = 64 };

/* One stored answer. */
struct compared_run {
    const char *id;
    json_t *document;
    const json_t *estimate; /* the estimate in it, or that of an advise answer's first plan */
    double step_time_s, hbm_bytes_per_device;
};

struct compared_term {
    const char *name; /* borrowed from the documents */
    double from, to;
};

/* Rows that add up to the difference of the totals. */
struct compared_terms {
    int count;
    struct compared_term rows[2 * (ADV_LIMIT_LEDGER_TERMS + ADV_LIMIT_MEMORY_PARTS)];
};

struct compared_pair {
    const struct compared_run *from, *to;
    struct compared_terms time, memory;
    const char *memory_at_from, *memory_at_to; /* the peaks whose parts the memory terms are */
};

static adv_code read_run(const char *id, const char *text, int index, struct compared_run *run, adv_err *err)
{
    run->id = id;
    run->document = adv_json_load_string(text, JSON_REJECT_DUPLICATES);
    run->estimate = run->document;
    const json_t *ranked = json_object_get(run->document, "ranked");
    if (ranked) run->estimate = json_object_get(json_array_get(ranked, 0), "estimate");
    run->step_time_s = adv_json_number_of(run->estimate, "step_time_s");
    run->hbm_bytes_per_device = adv_json_number_of(run->estimate, "hbm_bytes_per_device");
    if (!isnan(run->step_time_s)) return ADV_OK;
    return adv_err_add(err, ADV_E_INVALID, ADV_AT_INDEX("/runs", (size_t)index),
                       "compare estimates, or advise answers with a plan that fits",
                       "run %.90s holds no step time", id);
}

static const char *text_of(const json_t *part, const char *member)
{
    const char *text = json_string_value(json_object_get(part, member));
    return text ? text : "";
}

/* Which peak decides the memory: parts count when they are there always or at that peak. NULL: no part names
 * a peak, as in answers of old releases. */
static const char *deciding_peak(const json_t *parts)
{
    static const char *const peaks[] = {"loss", "backward", "update"};
    double sums[3] = {0, 0, 0};
    int best = 0;
    for (size_t k = 0; k < json_array_size(parts); k++) {
        const json_t *part = json_array_get(parts, k);
        for (int i = 0; i < 3; i++)
            if (strcmp(peaks[i], text_of(part, "at")) == 0) sums[i] += adv_json_number_of(part, "bytes");
    }
    for (int i = 1; i < 3; i++)
        if (sums[i] > sums[best]) best = i;
    return sums[best] > 0.0 ? peaks[best] : NULL;
}

static struct compared_term *term_of(struct compared_terms *terms, const char *name)
{
    for (int i = 0; i < terms->count; i++)
        if (strcmp(terms->rows[i].name, name) == 0) return &terms->rows[i];
    if (terms->count == (int)(sizeof terms->rows / sizeof *terms->rows) - 1)
        return NULL; /* one for the rest */
    struct compared_term *term = &terms->rows[terms->count++];
    *term = (struct compared_term){.name = name};
    return term;
}

/* Adds up the parts of one run by name; `peak` NULL takes all of them. Returns the sum of all. */
static double add_parts(struct compared_terms *terms, const json_t *parts, const char *member,
                        const char *peak, bool is_to)
{
    double total = 0;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const char *name = text_of(part, "name"), *at = text_of(part, "at");
        const double value = adv_json_number_of(part, member);
        bool counts = !peak || !*at || strcmp(at, "always") == 0 || strcmp(at, peak) == 0;
        struct compared_term *term = *name && counts && isfinite(value) ? term_of(terms, name) : NULL;
        if (!term) continue;
        *(is_to ? &term->to : &term->from) += value;
        total += value;
    }
    return total;
}

/* The parts' rest, a row of its own, makes the rows add up to the difference of the totals. */
static void add_rest(struct compared_terms *terms, double from, double from_total, double to, double to_total)
{
    const double from_rest = from_total - from, to_rest = to_total - to;
    if (fabs(from_rest) <= 1e-9 * fabs(from_total) && fabs(to_rest) <= 1e-9 * fabs(to_total)) return;
    terms->rows[terms->count++] = (struct compared_term){"not_itemised", from_rest, to_rest};
}

static void compare_two(const struct compared_run *from, const struct compared_run *to,
                        struct compared_pair *pair)
{
    const json_t *left = json_object_get(from->estimate, "time_parts");
    const json_t *right = json_object_get(to->estimate, "time_parts");
    *pair = (struct compared_pair){.from = from, .to = to};
    double before = add_parts(&pair->time, left, "exposed_seconds", NULL, false);
    double after = add_parts(&pair->time, right, "exposed_seconds", NULL, true);
    add_rest(&pair->time, before, from->step_time_s, after, to->step_time_s);
    left = json_object_get(from->estimate, "hbm_parts");
    right = json_object_get(to->estimate, "hbm_parts");
    pair->memory_at_from = deciding_peak(left);
    pair->memory_at_to = deciding_peak(right);
    before = add_parts(&pair->memory, left, "bytes", pair->memory_at_from, false);
    after = add_parts(&pair->memory, right, "bytes", pair->memory_at_to, true);
    add_rest(&pair->memory, before, from->hbm_bytes_per_device, after, to->hbm_bytes_per_device);
}

static json_t *encode_terms(const struct compared_terms *terms)
{
    const struct compared_term *rows = terms->rows;
    ADV_LIST(list, i, terms->count,
             ADV_OBJECT(ADV_F(&rows[i], name), ADV_F(&rows[i], from), ADV_F(&rows[i], to),
                        ADV_M("delta", rows[i].to - rows[i].from)));
    return list;
}

/* "<member>" and "<member>_frac" */
static void set_difference(json_t *object, const char *member, const char *frac_member, double from,
                           double to)
{
    ADV_PUT(object, ADV_M(member, to - from), ADV_M(frac_member, from > 0 ? to / from - 1 : (double)NAN));
}

static double tokens_of(const struct compared_run *run)
{
    return adv_json_number_of(run->estimate, "tokens_per_step");
}

static double sequence_of(const struct compared_run *run)
{
    return tokens_of(run) / adv_json_number_of(run->estimate, "global_batch_sequences");
}

static bool is_what_if(const struct compared_run *run)
{
    return adv_json_warning(run->estimate, "what-if-hardware") != NULL;
}

/* Whether two numbers differ by more than the rounding of a quotient; what is not known differs in nothing.
 */
static bool differ(double a, double b)
{
    return fabs(a - b) > 1e-9 * fabs(a);
}

/* Whether one of the members, of this part of both answers, is not the same. */
static bool part_differs(const struct compared_run *from, const struct compared_run *to, const char *part,
                         const char *const members[4])
{
    const json_t *left = json_object_get(from->document, part), *right = json_object_get(to->document, part);
    for (int i = 0; left && right && i < 4 && members[i]; i++) {
        json_t *a = json_object_get(left, members[i]), *b = json_object_get(right, members[i]);
        if (a && b && !json_equal(a, b)) return true;
    }
    return false;
}

/* What the two are not alike in: then the difference is not one of the plans alone. */
static json_t *encode_unlike(const struct compared_run *from, const struct compared_run *to)
{
    static const struct {
        const char *name, *part, *members[4];
    } parts[] = {{"model", "model", {"name", "layers", "params_total", "params_active"}},
                 {"machine", "cluster", {"chip", "topology", "slices"}},
                 {"engine", "engine", {"version", "catalog_hash"}},
                 {"calibration", "engine", {"calibration"}}};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (part_differs(from, to, parts[i].part, parts[i].members))
            (void)json_array_append_new(list, json_string(parts[i].name));
    /* which overrides a machine had, an answer does not hold: two may differ */
    if (is_what_if(from) || is_what_if(to)) (void)json_array_append_new(list, json_string("hardware"));
    if (differ(tokens_of(from), tokens_of(to)))
        (void)json_array_append_new(list, json_string("tokens_per_step"));
    if (differ(sequence_of(from), sequence_of(to)))
        (void)json_array_append_new(list, json_string("sequence_length"));
    return list;
}

static json_t *encode_pair(const struct compared_pair *pair)
{
    const struct compared_run *from = pair->from, *to = pair->to;
    json_t *object = ADV_OBJECT(ADV_M("from", from->id), ADV_M("to", to->id));
    set_difference(object, "step_time_s", "step_time_frac", from->step_time_s, to->step_time_s);
    set_difference(object, "hbm_bytes_per_device", "hbm_frac", from->hbm_bytes_per_device,
                   to->hbm_bytes_per_device);
    const double per_token = from->step_time_s / tokens_of(from);
    ADV_PUT(object, ADV_M("time_per_token_frac", to->step_time_s / tokens_of(to) / per_token - 1.0),
            ADV_M("unlike", encode_unlike(from, to)));
    ADV_PUT(object, ADV_M("time_terms", encode_terms(&pair->time)),
            ADV_M("memory_terms", encode_terms(&pair->memory)), ADV_F(pair, memory_at_from),
            ADV_F(pair, memory_at_to));
    return object;
}

static json_t *encode_run(const struct compared_run *run)
{
    static const char *const members[] = {
        "step_time_s",           "step_time_low_s", "step_time_high_s",       "tokens_per_step",
        "tokens_per_s_per_chip", "mfu_frac",        "hbm_bytes_per_device",   "fits",
        "fit_verdict",           "bound",           "usd_per_billion_tokens", "confidence"};
    static const char *const of_document[] = {"label", "model", "cluster", "engine"};
    json_t *object = ADV_OBJECT(ADV_M("run_id", run->id));
    for (size_t i = 0; i < sizeof of_document / sizeof *of_document; i++) {
        json_t *value = json_object_get(run->document, of_document[i]);
        if (value) (void)json_object_set(object, of_document[i], value);
    }
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(run->estimate, members[i]);
        (void)json_object_set_new(object, members[i], value ? json_incref(value) : json_null());
    }
    return object;
}

/* {runs, differences}; `pairs`: one less than runs. */
static json_t *encode_compared(const struct compared_run *runs, int count, const struct compared_pair *pairs)
{
    ADV_LIST(sides, i, count, encode_run(&runs[i]));
    ADV_LIST(differences, i, count - 1, encode_pair(&pairs[i]));
    return ADV_OBJECT(ADV_M("runs", sides), ADV_M("differences", differences));
}

adv_code adv_compare_json(const char *const *run_ids, const char *const *responses, int count,
                          struct adv_answer *answer, adv_err *err)
{
    struct adv_arena arena;
    struct compared_run runs[COMPARE_RUNS];
    memset(answer, 0, sizeof *answer);
    answer->step_time_s = answer->hbm_bytes_per_device = (double)NAN;
    if (count < 1 || count > COMPARE_RUNS) {
        return adv_err_add(err, ADV_E_RANGE, "/runs", NULL, "%d runs; from 1 to %d can be compared", count,
                           COMPARE_RUNS);
    }
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    struct compared_pair *pairs = adv_arena_array(&arena, (size_t)count, sizeof *pairs);
    if (!pairs) return adv_answer_no_memory(err);
    adv_code code = ADV_OK;
    for (int i = 0; i < count; i++) {
        adv_code read = read_run(run_ids[i], responses[i], i, &runs[i], err);
        if (read != ADV_OK) code = read;
    }
    for (int i = 1; pairs && code == ADV_OK && i < count; i++) compare_two(&runs[0], &runs[i], &pairs[i - 1]);
    if (code == ADV_OK)
        answer->json = adv_encode_text(encode_compared(runs, count, pairs), &answer->json_bytes);
    if (code == ADV_OK && !answer->json) code = adv_answer_no_memory(err);
    for (int i = 0; i < count; i++) json_decref(runs[i].document);
    adv_arena_free(&arena);
    return code;
}
