/* encode_sweep.c: the short list of a tuning as a sweep that runs on a chip: a Python program for tune-jax.
 */
#include "engine/base/text.h"
#include "engine/json/encode_kernel.h"
#include "engine/kernel/families.h"

/* One row of TILES: values in the order of NAMES, the predicted time beside them. */
static void write_tile(struct adv_text *text, json_t *tiles, enum adv_kernel kernel,
                       const struct adv_kernel_choice *choice)
{
    json_t *tile = adv_encode_tile(kernel, choice);
    int count = 0;
    adv_text_append(text, "    (");
    for (struct adv_json_walk entry = {.in = tile}; adv_json_next_member(&entry);) {
        if (count++) adv_text_append(text, ", ");
        if (json_is_string(entry.value))
            adv_text_format(text, "\"%s\"", json_string_value(entry.value));
        else
            adv_text_format(text, "%lld", (long long)json_integer_value(entry.value));
    }
    adv_text_format(text, "),  # predicted %.1f us\n", choice->time.time_s * 1e6);
    (void)json_array_append_new(tiles, tile);
}

static void write_tiles(struct adv_text *text, json_t *tiles, const struct adv_kernel_request *request,
                        const struct adv_kernel_tuning *tuning)
{
    json_t *first = adv_encode_tile(request->kernel, &tuning->short_list[0].best);
    int count = 0;
    adv_text_append(text, "NAMES = (");
    for (struct adv_json_walk entry = {.in = first}; adv_json_next_member(&entry);)
        adv_text_format(text, "%s\"%s\"", count++ ? ", " : "", entry.key);
    json_decref(first);
    adv_text_append(text, ")\nTILES = [\n");
    for (int i = 0; i < tuning->short_list_count; i++) {
        const struct adv_kernel_listed *listed = &tuning->short_list[i];
        write_tile(text, tiles, request->kernel, &listed->best);
        for (int k = 0; k < listed->others_count; k++)
            write_tile(text, tiles, request->kernel, &listed->others[k]);
    }
    adv_text_append(text, "]\n");
}

json_t *adv_encode_sweep(const struct adv_kernel_request *request, const struct adv_kernel_tuning *tuning)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    if (tuning->short_list_count == 0) return json_null();
    json_t *tiles = json_array();
    struct adv_text text = adv_text_empty(ADV_LIMIT_BODY_BYTES);
    adv_text_format(&text, "# Times the short list of %s on a %s. Needs: pip install tune-jax%s\n",
                    adv_kernel_name(request->kernel), request->chip->chip.name, family->sweep_needs);
    if (request->scoped_vmem_limit_bytes > 0.0)
        adv_text_format(&text, "# Run with LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=%.0f\n",
                        request->scoped_vmem_limit_bytes / 1024.0);
    const char *lines[ADV_SWEEP_DIFFERENCES];
    const int differences = family->differences ? family->differences(request, lines) : 0;
    for (int i = 0; i < differences; i++) adv_text_format(&text, "# Not as tuned: %s\n", lines[i]);
    adv_text_append(&text, "import jax\nimport jax.numpy as jnp\nimport numpy as np\nimport tune_jax\n");
    family->sweep(&text, request);
    write_tiles(&text, tiles, request, tuning);
    adv_text_append(&text, "tune_jax.tune_logger.setLevel(\"INFO\")\n"
                           "tuned = tune_jax.tune(run, hyperparams={\"tile\": TILES})\n"
                           "jax.block_until_ready(tuned(*arguments))\n"
                           "print(tuned.optimal_hyperparams)\n");
    json_t *sweep = json_object();
    (void)json_object_set_new(sweep, "tiles", tiles);
    (void)json_object_set_new(sweep, "tune_jax", text.data ? json_string(text.data) : json_null());
    adv_text_free(&text);
    return sweep;
}
