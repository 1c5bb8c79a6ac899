#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/decode_measurements.h"
#include "engine/json/encode_common.h"

/* The seconds that the age of its software adds to the predicted step: a factor of the generation's first
 * months that an estimate of the same request does not have. */
static double software_age_s(const struct adv_measurement *row)
{
    for (int i = 0; i < row->ledger.terms_count; i++)
        if (strcmp(row->ledger.terms[i].name, "software_age") == 0)
            return row->ledger.terms[i].exposed_seconds;
    return 0;
}

static json_t *row_json(const struct adv_measurement *row)
{
    const struct adv_estimate *e = &row->estimate;
    bool known = row->answered;
    json_t *json = json_pack("{s:s, s:s, s:s, s:o}", "id", row->id, "chip", row->chip, "model", row->family,
                             "measured_step_time_s", adv_encode_number(row->measured_step_time_s));
    adv_encode_set_number(json, "step_time_s", known ? e->step_time_s : (double)NAN);
    adv_encode_set_number(json, "error_frac", row->error_frac);
    adv_encode_set_number(json, "low_s", known ? e->step_time_low_s : (double)NAN);
    adv_encode_set_number(json, "high_s", known ? e->step_time_high_s : (double)NAN);
    adv_encode_set_number(json, "software_year", row->plan.family.software_date);
    adv_encode_set_number(json, "software_age_s", known ? software_age_s(row) : (double)NAN);
    (void)json_object_set_new(json, "fits", known ? json_boolean(e->fit != ADV_FIT_NO) : json_null());
    adv_encode_set_string(json, "fit_verdict", known ? adv_fit_name(e->fit) : NULL);
    adv_encode_set_number(json, "hbm_bytes_per_device", known ? e->hbm_bytes_per_device : (double)NAN);
    adv_encode_set_string(json, "confidence", known ? adv_confidence_name(e->confidence) : NULL);
    if (!known && row->findings_count > 0) adv_encode_set_string(json, "reason", row->findings[0].detail);
    if (row->findings_count > 0)
        (void)json_object_set_new(json, "findings",
                                  adv_encode_finding_list(row->findings, row->findings_count));
    return json;
}

static void put_accuracy(json_t *object, const struct adv_accuracy *accuracy)
{
    ADV_SET(object, accuracy, judged_count, median_abs_error_frac, p90_abs_error_frac, max_abs_error_frac,
            bias_frac, interval_coverage_frac);
}

/* One group for each (chip, model), in order of first appearance. */
static json_t *groups_json(const struct adv_measurement *rows, int count)
{
    json_t *groups = json_array();
    bool *keep = calloc(count > 0 ? (size_t)count : 1, sizeof *keep);
    for (int i = 0; i < count && keep; i++) {
        bool first = rows[i].answered;
        for (int j = 0; j < i && first; j++)
            first = strcmp(rows[i].chip, rows[j].chip) != 0 || strcmp(rows[i].family, rows[j].family) != 0;
        if (!first) continue;
        for (int j = 0; j < count; j++)
            keep[j] = strcmp(rows[i].chip, rows[j].chip) == 0 && strcmp(rows[i].family, rows[j].family) == 0;
        struct adv_accuracy accuracy = adv_accuracy_of(rows, count, keep);
        json_t *group = json_pack("{s:s, s:s}", "chip", rows[i].chip, "model", rows[i].family);
        put_accuracy(group, &accuracy);
        (void)json_array_append_new(groups, group);
    }
    free(keep);
    return groups;
}

char *adv_encode_validation(const struct adv_catalog *catalog, const struct adv_measurement *rows,
                            int rows_count)
{
    json_t *root = json_object();
    json_t *list = json_array();
    int answered = 0;
    for (int i = 0; i < rows_count; i++) {
        (void)json_array_append_new(list, row_json(&rows[i]));
        answered += rows[i].answered;
    }
    (void)json_object_set_new(root, "rows", list);
    (void)json_object_set_new(root, "groups", groups_json(rows, rows_count));
    struct adv_accuracy accuracy = adv_accuracy_of(rows, rows_count, NULL);
    put_accuracy(root, &accuracy);
    adv_encode_set_integer(root, "rows_count", rows_count);
    adv_encode_set_integer(root, "answered_count", answered);
    struct adv_ranking ranking = adv_ranking_of(rows, rows_count, 0.03);
    (void)json_object_set_new(root, "ranked_pairs_count", json_integer(ranking.pairs_count));
    (void)json_object_set_new(root, "ranked_right_count", json_integer(ranking.right_count));
    (void)json_object_set_new(root, "engine", adv_encode_engine(catalog));
    size_t bytes = 0;
    return adv_encode_text(root, &bytes);
}
