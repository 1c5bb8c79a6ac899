#include "engine/json/plan_warnings.h"

#include "engine/explain/over_vmem.h"
#include "engine/explain/whatif.h"
#include "engine/json/decode_request.h"

/* MFU follows MaxText's count of model FLOPs, which for a few models holds work that no plan does (olmo3's
 * windows, keys a sparse indexer leaves out): then it is told beside the rate. */
static void warn_of_count(const struct adv_estimate *estimate, adv_err *warnings)
{
    const double notable_frac = 0.98;
    if (estimate->hfu_frac >= notable_frac * estimate->mfu_frac) return;
    (void)adv_err_add(
        warnings, ADV_OK, "", "compare hfu_frac, or step times",
        "mfu_frac counts %.3g times the FLOPs that the plan executes: this convention, or MaxText's count "
        "of this model, has attention that windows, sparsity or causality skip",
        estimate->mfu_frac / estimate->hfu_frac);
    adv_err_rule(warnings, "flops-count");
}

/* MaxText hashes n-grams of tokens: it opens the tokenizer when it reads the configuration. */
static void warn_of_needs(const struct adv_model *model, adv_err *warnings)
{
    if (model->engram_layers == 0) return;
    (void)adv_err_add(warnings, ADV_OK, "/config/tokenizer_path",
                      "give tokenizer_path (in EXTRA_ARGS of a script) and the environment variable HF_TOKEN",
                      "%s builds its n-gram tables from the tokenizer: MaxText refuses the run without",
                      model->name);
    adv_err_rule(warnings, "engram-tokenizer");
}

void adv_warn_of_estimate(const struct adv_catalog *catalog, const struct adv_estimate_input *input,
                          const struct adv_estimate *estimate, const struct adv_ledger *ledger,
                          adv_err *warnings)
{
    const struct adv_chip *chip = &input->cluster->chip;
    warn_of_count(estimate, warnings);
    warn_of_needs(input->model, warnings);
    adv_over_vmem_report(ledger, chip, &input->plan->flags, ADV_OK, warnings);
    if (input->cluster->has_overrides)
        adv_whatif_idle(&adv_catalog_chip(catalog, chip->name)->chip, input, estimate, warnings);
}

void adv_warn_of_row(const struct adv_catalog *catalog, const json_t *root, const json_t *row,
                     const struct adv_estimate_input *input, const struct adv_estimate *estimate,
                     const struct adv_ledger *ledger, struct adv_arena *arena, adv_err *warnings)
{
    static const struct {
        const char *member;
        bool of_row;
    } members[] = {{"model", false}, {"cluster", false}, {"config", true}, {"xla_flags", true}};
    struct adv_estimate_request *request = adv_arena_alloc(arena, sizeof *request);
    adv_err refused;
    json_t *document = json_object();
    adv_err_init(&refused);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(members[i].of_row ? row : root, members[i].member);
        if (value) (void)json_object_set(document, members[i].member, value);
    }
    if (request)
        (void)!adv_decode_estimate_request(catalog, document, "", arena, request, &refused, warnings);
    json_decref(document);
    adv_warn_of_estimate(catalog, input, estimate, ledger, warnings);
}
