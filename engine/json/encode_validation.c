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
    ADV_PUT(json, ADV_M("step_time_s", known ? e->step_time_s : (double)NAN),
            ADV_M("error_frac", row->error_frac), ADV_M("low_s", known ? e->step_time_low_s : (double)NAN),
            ADV_M("high_s", known ? e->step_time_high_s : (double)NAN),
            ADV_M("software_year", row->plan.family.software_date),
            ADV_M("software_age_s", known ? software_age_s(row) : (double)NAN),
            ADV_M("fits", known ? json_boolean(e->fit != ADV_FIT_NO) : json_null()),
            ADV_M("fit_verdict", known ? adv_fit_name(e->fit) : NULL),
            ADV_M("hbm_bytes_per_device", known ? e->hbm_bytes_per_device : (double)NAN),
            ADV_M("confidence", known ? adv_confidence_name(e->confidence) : NULL),
            ADV_M_IF(!known && row->findings_count > 0, "reason", row->findings[0].detail),
            ADV_M_IF(row->findings_count > 0, "findings",
                     adv_encode_finding_list(row->findings, row->findings_count)));
    return json;
}

static void put_accuracy(json_t *object, const struct adv_accuracy *accuracy)
{
    ADV_PUT(object, ADV_F(accuracy, judged_count), ADV_F(accuracy, median_abs_error_frac),
            ADV_F(accuracy, p90_abs_error_frac), ADV_F(accuracy, max_abs_error_frac),
            ADV_F(accuracy, bias_frac), ADV_F(accuracy, interval_coverage_frac));
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
    const struct adv_accuracy accuracy = adv_accuracy_of(rows, rows_count, NULL);
    const struct adv_pair_order ranking = adv_pair_order_of(rows, rows_count, 0.03);
    int answered = 0;
    for (int i = 0; i < rows_count; i++) answered += rows[i].answered;
    ADV_LIST(list, i, rows_count, row_json(&rows[i]));
    json_t *root = ADV_OBJECT(ADV_M("rows", list), ADV_M("groups", groups_json(rows, rows_count)));
    put_accuracy(root, &accuracy);
    ADV_PUT(root, ADV_M("rows_count", rows_count), ADV_M("answered_count", answered),
            ADV_M("ranked_pairs_count", ranking.pairs_count),
            ADV_M("ranked_right_count", ranking.right_count), ADV_M("engine", adv_encode_engine(catalog)));
    size_t bytes = 0;
    return adv_encode_text(root, &bytes);
}
