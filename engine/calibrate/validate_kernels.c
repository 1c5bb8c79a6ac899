#include "engine/calibrate/validate_kernels.h"

#include <stdlib.h>

#include "engine/kernel/xent.h"

static adv_code predict_splash(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                               struct adv_kernel_time *time, adv_err *err)
{
    if (row->has_tile)
        return adv_splash_time(machine, row->kernel, &row->attention, &row->attention_tile,
                               &row->attention_flags, time, err);
    struct adv_attention_tile best;
    int found = 0;
    long evaluated = 0;
    return adv_splash_tune(machine, row->kernel, &row->attention, &row->attention_flags, 1, &best, time,
                           &found, &evaluated, err);
}

static adv_code predict_gmm(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                            struct adv_kernel_time *time, adv_err *err)
{
    if (row->has_tile || row->gmm.version == 2)
        return adv_gmm_time(machine, row->kernel, &row->gmm, &row->gmm_tile, time, err);
    struct adv_gmm_tile best;
    int found = 0;
    long evaluated = 0;
    return adv_gmm_tune(machine, row->kernel, &row->gmm, 1, &best, time, &found, &evaluated, err);
}

adv_code adv_predict_kernel_row(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                                struct adv_kernel_time *time, adv_err *err)
{
    if (row->fault) return adv_err_add(err, ADV_E_INVALID, "", NULL, "%s", row->fault);
    switch (row->kind) {
    case ADV_ROW_SPLASH:
        return predict_splash(machine, row, time, err);
    case ADV_ROW_GMM:
        return predict_gmm(machine, row, time, err);
    case ADV_ROW_ATTENTION_XLA:
        return adv_attention_xla_time(machine, row->backward, &row->attention, time, err);
    case ADV_ROW_GMM_XLA:
        return adv_gmm_xla_time(machine, row->kernel, &row->gmm, time, err);
    case ADV_ROW_MATMUL:
        return adv_matmul_time(machine, &row->matmul, time, err);
    case ADV_ROW_XENT:
        return adv_xent_time(machine, row->kernel, &row->xent,
                             row->has_tile ? &row->xent_tile : &adv_xent_default, time, err);
    case ADV_ROW_HBM_COPY:
        *time = (struct adv_kernel_time){.time_s = adv_stream_time_s(machine, row->copy_bytes),
                                         .fits_vmem = true};
        return ADV_OK;
    case ADV_ROW_UNKNOWN:
    case ADV_ROW_KINDS:
        break;
    }
    return adv_err_add(err, ADV_E_UNSUPPORTED, "/kernel", NULL, "there is no model of kernel '%s'",
                       row->name);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct adv_error_summary adv_summarize_errors(double *errors_frac, int count)
{
    struct adv_error_summary summary = {.count = count};
    if (count < 1) return summary;
    qsort(errors_frac, (size_t)count, sizeof *errors_frac, compare);
    summary.median_frac =
        count % 2 ? errors_frac[count / 2] : (errors_frac[count / 2 - 1] + errors_frac[count / 2]) / 2.0;
    summary.p90_frac = errors_frac[(count * 9 + 9) / 10 - 1];
    summary.max_frac = errors_frac[count - 1];
    return summary;
}
