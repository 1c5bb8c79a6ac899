/* encode_kernel_validation.c: predicted against published kernel timings, row by row and by chip and kernel.
 */
#include "engine/calibrate/validate_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/catalog/catalog.h"
#include "engine/json/encode_common.h"

/* Errors of the rows predicted so far; `group` numbers (chip, kernel) pairs in order of appearance. */
struct errors {
    double *all;    /* of every predicted row */
    double *sorted; /* scratch of the same size */
    int *group;
    int count;
};

static json_t *summary(json_t *object, struct adv_error_summary errors)
{
    ADV_PUT(object, ADV_M("median_abs_error_frac", errors.count ? errors.median_frac : (double)NAN),
            ADV_M("p90_abs_error_frac", errors.count ? errors.p90_frac : (double)NAN),
            ADV_M("max_abs_error_frac", errors.count ? errors.max_frac : (double)NAN));
    return object;
}

/* The number of the row's (chip, kernel) pair; a new pair is appended to `groups`. */
static int group_of(json_t *groups, const struct adv_kernel_row *row)
{
    for (struct adv_json_walk known = {.in = groups}; adv_json_next(&known);) {
        if (strcmp(json_string_value(json_object_get(known.value, "chip")), row->chip) == 0 &&
            strcmp(json_string_value(json_object_get(known.value, "kernel")), row->name) == 0)
            return (int)known.index;
    }
    (void)json_array_append_new(
        groups, ADV_OBJECT(ADV_M("chip", json_string(row->chip)), ADV_M("kernel", json_string(row->name))));
    return (int)json_array_size(groups) - 1;
}

static json_t *encode_row(const struct adv_catalog *catalog, const struct adv_kernel_row *row, json_t *groups,
                          struct errors *errors)
{
    json_t *object = ADV_OBJECT(ADV_M("id", json_string(row->id)), ADV_M("chip", json_string(row->chip)),
                                ADV_M("kernel", json_string(row->name)));
    adv_err err = adv_err_empty();
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, row->chip);
    struct adv_kernel_time time;
    adv_code code;
    if (chip && chip->chip.is_tpu) {
        const struct adv_kernel_machine machine = {.chip = &chip->chip, .constants = &chip->constants};
        code = adv_predict_kernel_row(&machine, row, &time, &err);
    } else {
        code = adv_err_add(&err, ADV_E_NOT_FOUND, "/chip", NULL, "there is no TPU '%s'", row->chip);
    }
    ADV_PUT(object, ADV_M("time_us", code ? (double)NAN : time.time_s * 1e6),
            ADV_M("measured_us", row->measured_s > 0.0 ? row->measured_s * 1e6 : (double)NAN));
    if (code) {
        ADV_PUT(object, ADV_M("reason", json_string(err.findings[0].detail)), ADV_M("trusted", json_false()));
        return object;
    }
    if (row->measured_s > 0.0) {
        const double error = time.time_s / row->measured_s - 1.0;
        ADV_PUT(object, ADV_M("error_frac", error));
        errors->group[errors->count] = group_of(groups, row);
        errors->all[errors->count++] = fabs(error);
    }
    ADV_PUT(object, ADV_F(&time, fits_vmem), ADV_F(&time, extrapolated),
            ADV_M("trusted", json_boolean(row->trusted)));
    return object;
}

/* The errors of one group (-1: all), summarised. */
static struct adv_error_summary summarize(const struct errors *errors, int group)
{
    int count = 0;
    for (int i = 0; i < errors->count; i++)
        if (group < 0 || errors->group[i] == group) errors->sorted[count++] = errors->all[i];
    return adv_summarize_errors(errors->sorted, count);
}

char *adv_encode_kernel_validation(const struct adv_catalog *catalog, const struct adv_kernel_row *rows,
                                   int rows_count)
{
    const size_t size = (size_t)(rows_count > 0 ? rows_count : 1);
    struct errors errors = {.all = calloc(size, sizeof(double)),
                            .sorted = calloc(size, sizeof(double)),
                            .group = calloc(size, sizeof(int))};
    json_t *root = NULL;
    if (errors.all && errors.sorted && errors.group) {
        root = json_object();
        json_t *list = json_array(), *groups = json_array();
        for (int i = 0; i < rows_count; i++)
            (void)json_array_append_new(list, encode_row(catalog, &rows[i], groups, &errors));
        for (size_t g = 0; g < json_array_size(groups); g++) {
            const struct adv_error_summary of_group = summarize(&errors, (int)g);
            json_t *group = json_array_get(groups, g);
            ADV_PUT(group, ADV_M("count", of_group.count));
            (void)summary(group, of_group);
        }
        ADV_PUT(root, ADV_M("engine", adv_encode_engine(catalog)), ADV_M("rows", list),
                ADV_M("groups", groups));
        (void)summary(root, summarize(&errors, -1));
    }
    free(errors.all);
    free(errors.sorted);
    free(errors.group);
    size_t bytes = 0;
    return root ? adv_encode_text(root, &bytes) : NULL;
}
