#include "engine/calibrate/validate_kernels.h"

#include <stdlib.h>

#include "engine/kernel/family.h"
#include "engine/kernel/tune.h"

/* The tile that ran; where it is not published the tuner's best, or MaxText's default where winners are not
 * published either. */
static adv_code predict(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                        struct adv_kernel_time *time, adv_err *err)
{
    const struct adv_kernel_request *request = &row->request;
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    struct adv_kernel_tile tile = request->tile;
    if (!row->has_tile && !adv_kernel_tiles_itself(request)) {
        struct adv_ranking best = {.top_k = 1, .tiles = &tile, .times = time};
        if (family->candidates) return adv_tune(machine, request, &best, err);
        (void)family->standard(request, &tile);
    }
    return family->time(machine, request, &tile, time, err);
}

adv_code adv_predict_kernel_row(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                                struct adv_kernel_time *time, adv_err *err)
{
    if (row->fault) return adv_err_add(err, ADV_E_INVALID, "", NULL, "%s", row->fault);
    if (!row->known)
        return adv_err_add(err, ADV_E_UNSUPPORTED, "/kernel", NULL, "there is no model of kernel '%s'",
                           row->name);
    if (!row->is_copy) return predict(machine, row, time, err);
    *time =
        (struct adv_kernel_time){.time_s = adv_stream_time_s(machine, row->copy_bytes), .fits_vmem = true};
    return ADV_OK;
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
