#include "server/gate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/base/units.h"
#include "engine/cost/estimate.h"

#define DESCRIBED_BYTES 128   /* two fit into a finding */
#define SLACK_FRAC      1e-12 /* rounding of a quotient must not fail a candidate that equals its limit */
#define ALIKE_FRAC      1e-9  /* rounding of a quotient must not tell equal lengths apart */
#define WORK_FRAC       1e-6  /* nor that of three of them equal models */

static void say(struct adv_gate_said *list, int *count, int capacity, const char *code, const char *format,
                ...) ADV_PRINTF(5, 6);
static void say(struct adv_gate_said *list, int *count, int capacity, const char *code, const char *format,
                ...)
{
    if (*count == capacity) return;
    struct adv_gate_said *said = &list[(*count)++];
    said->code = code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(said->detail, sizeof said->detail, format, args);
    va_end(args);
    adv_text_mend(said->detail); /* names in it are cut */
}

#define NOTE(verdict, ...) say((verdict)->notes, &(verdict)->notes_count, ADV_GATE_NOTES, __VA_ARGS__)
#define FAIL(verdict, ...) say((verdict)->reasons, &(verdict)->reasons_count, ADV_GATE_REASONS, __VA_ARGS__)

static double per_token(const struct adv_gate_numbers *numbers)
{
    return numbers->step_time_s / numbers->tokens_per_step;
}

bool adv_gate_is_tight(const struct adv_gate_numbers *numbers)
{
    return numbers->fits && strcmp(numbers->fit_verdict, adv_fit_name(ADV_FIT_TIGHT)) == 0;
}

static bool alike(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= ALIKE_FRAC * fmax(fabs(a), fabs(b));
}

/* Whether a token is the same work of the model: attention sees as far. Of one length only; what cannot be
 * compared counts as the same. */
static bool same_work(const struct adv_gate_numbers *a, const struct adv_gate_numbers *b)
{
    if (!alike(a->sequence_tokens, b->sequence_tokens) || strcmp(a->convention, b->convention) != 0)
        return true;
    return !(fabs(a->tflops_per_token - b->tflops_per_token) > WORK_FRAC * fabs(a->tflops_per_token));
}

/* A model of another name may be the same; what is overridden of a named one may not. Experts that drop
 * tokens do less, and train another model, than those that take all. */
static bool same_model(const struct adv_gate_numbers *a, const struct adv_gate_numbers *b)
{
    const bool same_variant = strcmp(a->model, b->model) != 0 || strcmp(a->variant, b->variant) == 0;
    return strcmp(a->decoder_block, b->decoder_block) == 0 && alike(a->layers_count, b->layers_count) &&
           alike(a->params_total, b->params_total) && alike(a->params_active, b->params_active) &&
           alike(a->expert_capacity_factor, b->expert_capacity_factor) && same_variant && same_work(a, b);
}

/* The model for people, with what tells it from another. */
static void describe(const struct adv_gate_numbers *numbers, char text[DESCRIBED_BYTES])
{
    const char *variant = strchr(numbers->variant, ':');
    text[0] = '\0';
    adv_append(text, DESCRIBED_BYTES, "%.50s (%.4g parameters, %.0f layers, %.4g GFLOP a token",
               numbers->model, numbers->params_total, numbers->layers_count, 1e3 * numbers->tflops_per_token);
    if (numbers->expert_capacity_factor > 0.0)
        adv_append(text, DESCRIBED_BYTES, ", expert capacity %.4g", numbers->expert_capacity_factor);
    adv_append(text, DESCRIBED_BYTES, "%s%s)", variant ? ";" : "", variant ? variant + 1 : "");
}

adv_code adv_gate_compare_like(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                               const bool may_differ[ADV_GATE_UNLIKES], adv_err *err)
{
    const struct adv_gate_numbers *from = &baseline->now, *to = &candidate->now;
    char ours[DESCRIBED_BYTES], theirs[DESCRIBED_BYTES];
    describe(from, theirs);
    describe(to, ours);
    if (!may_differ[ADV_GATE_UNLIKE_MODEL] && !same_model(from, to))
        (void)adv_err_add_rule(err, ADV_E_INVALID, "unlike-model", "/candidate",
                               "compare runs of one model, or say \"allow_unlike\": [\"model\"]",
                               "the candidate is %s, the baseline %s: unlike work is not compared", ours,
                               theirs);
    if (!may_differ[ADV_GATE_UNLIKE_SEQUENCE] && !alike(from->sequence_tokens, to->sequence_tokens))
        (void)adv_err_add_rule(
            err, ADV_E_INVALID, "unlike-sequence-length", "/candidate",
            "compare runs of one length, or say \"allow_unlike\": [\"sequence_length\"]",
            "the candidate trains sequences of %.0f tokens, the baseline of %.0f: unlike work "
            "is not compared",
            to->sequence_tokens, from->sequence_tokens);
    return err->code;
}

/* The number that each limit bounds. The step time's is judged by the time per token, as its table says. */
static double measure(const struct adv_gate_numbers *numbers, enum adv_gate_limit limit)
{
    const double values[ADV_GATE_LIMITS] = {
        [ADV_GATE_STEP_TIME] = numbers->step_time_s,
        [ADV_GATE_TIME_PER_TOKEN] = per_token(numbers),
        [ADV_GATE_TOKENS_PER_CHIP] = numbers->tokens_per_s_per_chip,
        [ADV_GATE_USD_PER_TOKEN] = numbers->usd_per_billion_tokens,
        [ADV_GATE_HBM] = numbers->hbm_bytes_per_device,
    };
    return values[limit];
}

/* By how much a limit's measure got worse. */
static double worsening(const struct adv_gate_verdict *verdict, enum adv_gate_limit limit)
{
    if (limit == ADV_GATE_STEP_TIME) return verdict->change_frac[ADV_GATE_TIME_PER_TOKEN];
    return limit == ADV_GATE_TOKENS_PER_CHIP ? -verdict->change_frac[limit] : verdict->change_frac[limit];
}

/* A change and its limit in percent, with as many digits as tell the two apart. */
static void say_over(double change_frac, double limit_frac, char text[96])
{
    char change[32], limit[32];
    for (int digits = 2; digits <= 8; digits++) {
        (void)snprintf(change, sizeof change, "%+.*f", digits, 100.0 * change_frac);
        (void)snprintf(limit, sizeof limit, "%+.*f", digits, 100.0 * limit_frac);
        if (strcmp(change, limit) != 0) break;
    }
    (void)snprintf(text, 96, "%s %%; the limit is %s %%", change, limit);
}

static void fail_limit(const struct adv_gate_numbers *from, const struct adv_gate_numbers *to,
                       enum adv_gate_limit limit, double limit_frac, struct adv_gate_verdict *verdict)
{
    const char *code = adv_gate_limit_code(limit);
    const double worse = worsening(verdict, limit), before = measure(from, limit), after = measure(to, limit);
    const double sign = limit == ADV_GATE_TOKENS_PER_CHIP ? -1.0 : 1.0;
    char over[96];
    say_over(sign * worse, sign * limit_frac, over);
    verdict->unknown_count += isnan(worse);
    if (isnan(worse))
        FAIL(verdict, code, "%s is not known of both sides%s", adv_gate_limit_member(limit),
             limit == ADV_GATE_USD_PER_TOKEN ? ": cluster.price_usd_per_chip_hour is missing" : "");
    else if (limit == ADV_GATE_HBM)
        FAIL(verdict, code, "a device holds %.2f GiB instead of %.2f GiB, %s", after / ADV_GIB,
             before / ADV_GIB, over);
    else if (limit == ADV_GATE_TOKENS_PER_CHIP)
        FAIL(verdict, code, "a chip trains %.5g tokens a second instead of %.5g, %s", after, before, over);
    else if (limit == ADV_GATE_USD_PER_TOKEN)
        FAIL(verdict, code, "a billion tokens cost %.5g dollars instead of %.5g, %s", after, before, over);
    else
        FAIL(verdict, code,
             "a million tokens take %.4g s instead of %.4g s, %s (the step: %.4g s instead of %.4g s)",
             1e6 * per_token(to), 1e6 * per_token(from), over, to->step_time_s, from->step_time_s);
}

static bool is_of_time(int limit)
{
    return limit != ADV_GATE_HBM;
}

static bool same_machine(const struct adv_gate_numbers *a, const struct adv_gate_numbers *b)
{
    return strcmp(a->chip, b->chip) == 0 && strcmp(a->topology, b->topology) == 0 && a->slices == b->slices;
}

/* Whether a candidate that keeps to the limit takes no longer for a token. Half the chips train as many
 * tokens a chip, and a price may fall faster than the time rises. */
static bool bounds_time(int limit, const struct adv_gate_numbers *from, const struct adv_gate_numbers *to)
{
    return limit == ADV_GATE_STEP_TIME || limit == ADV_GATE_TIME_PER_TOKEN ||
           (limit == ADV_GATE_TOKENS_PER_CHIP && same_machine(from, to));
}

/* A check that compares nothing: a forgotten limit looks like a kept one. */
static void note_no_limit(const struct adv_gate_limits *limits, struct adv_gate_verdict *verdict)
{
    for (int i = 0; i < ADV_GATE_LIMITS; i++)
        if (!isnan(limits->frac[i])) return;
    NOTE(
        verdict, "no_limit",
        "no limit on time, cost or the growth of memory was given: the candidate is judged by itself%s, not against the baseline",
        limits->must_fit || limits->must_compile ? "" : ", and by nothing");
}

/* A limit that is narrower than what the prediction is sure of: a pass or a fail is then the model's opinion
 * of the change, not more. */
static void note_interval(const struct adv_gate_numbers *to, const struct adv_gate_limits *limits,
                          struct adv_gate_verdict *verdict)
{
    const double low = to->step_time_low_s / to->step_time_s - 1.0;
    const double high = to->step_time_high_s / to->step_time_s - 1.0;
    for (int i = 0; i < ADV_GATE_LIMITS; i++) {
        const double limit = limits->frac[i];
        if (!is_of_time(i) || isnan(limit) || !(limit > low && limit < high)) continue;
        NOTE(verdict, "limit_inside_interval",
             "the limit of %+.2f %% lies inside the 90 %% interval of the prediction (%+.1f %% to %+.1f %%): "
             "errors that both sides share cancel, others may be larger than the limit",
             100.0 * limit, 100.0 * low, 100.0 * high);
        return;
    }
}

static void note_reevaluation(const char *name, const struct adv_gate_side *side,
                              struct adv_gate_verdict *verdict)
{
    if (!side->reevaluated) return;
    NOTE(verdict, "reevaluated",
         "the %s was answered by engine %.20s (catalog %.12s, calibration %.50s): %.4g s a step and %.2f GiB "
         "then, %.4g s and %.2f GiB by this engine under %.50s, which is what is judged",
         name, side->stored.engine_version, side->stored.catalog_hash, side->stored.calibration,
         side->stored.step_time_s, side->stored.hbm_bytes_per_device / ADV_GIB, side->now.step_time_s,
         side->now.hbm_bytes_per_device / ADV_GIB, side->now.calibration);
}

/* A side that no machine can run as it was priced. */
static void note_what_if(const struct adv_gate_numbers *from, const struct adv_gate_numbers *to,
                         struct adv_gate_verdict *verdict)
{
    if (!from->is_what_if && !to->is_what_if) return;
    NOTE(verdict, "what_if_hardware",
         "the %s priced with other hardware than the published (cluster.overrides): time and memory are "
         "those of a machine that may not exist",
         from->is_what_if && to->is_what_if ? "baseline and the candidate are"
         : to->is_what_if                   ? "candidate is"
                                            : "baseline is");
}

/* Differences that change what is trained, or what it is paid by, and not how the step is made. */
static void note_terms(const struct adv_gate_numbers *from, const struct adv_gate_numbers *to,
                       struct adv_gate_verdict *verdict)
{
    static const char usual[] = "MaxText's defaults";
    note_what_if(from, to, verdict);
    if (strcmp(from->numerics, to->numerics) != 0)
        NOTE(verdict, "other_numerics",
             "number formats or optimizer differ: %.200s instead of %.200s. Other weights come out",
             to->numerics[0] ? to->numerics : usual, from->numerics[0] ? from->numerics : usual);
    if (from->maxtext[0] && to->maxtext[0] &&
        (strcmp(from->maxtext, to->maxtext) != 0 || strcmp(from->libtpu, to->libtpu) != 0))
        NOTE(verdict, "other_software",
             "the candidate is for MaxText %.40s with libtpu %.40s, the baseline for MaxText %.40s with "
             "libtpu %.40s: time and memory of both are those of the pinned releases",
             to->maxtext, to->libtpu, from->maxtext, from->libtpu);
    if (strcmp(from->chip, to->chip) == 0 &&
        fabs(from->price_usd_per_chip_hour - to->price_usd_per_chip_hour) > 0.0)
        NOTE(verdict, "other_price",
             "a chip-hour costs %.5g dollars instead of %.5g: dollars per token follow the price, too",
             to->price_usd_per_chip_hour, from->price_usd_per_chip_hour);
}

/* Whether the versions, "maxtext 0.2.5, jax …", name the release as that of the program. */
static bool names_release(const char *versions, const char *program, const char *release)
{
    char wanted[2 * ADV_LIMIT_NAME];
    const int length = snprintf(wanted, sizeof wanted, "%s %s", program, release);
    for (const char *at = versions; (at = strstr(at, wanted)); at++)
        if (at[length] == ',' || at[length] == '\0') return true;
    return false;
}

/* The pinned compiler spoke of a plan that is for other releases. */
static void note_compiler(const struct adv_gate_side *candidate, struct adv_gate_verdict *verdict)
{
    const struct adv_gate_numbers *to = &candidate->now;
    const struct adv_verification_word *word = &candidate->word;
    if (!word->known || !to->maxtext[0] ||
        (names_release(word->versions, "maxtext", to->maxtext) &&
         names_release(word->versions, "libtpu", to->libtpu)))
        return;
    NOTE(verdict, "compiled_by_other_releases",
         "the compiler's word on the candidate is that of %.100s, and the candidate is for MaxText %.40s "
         "with libtpu %.40s",
         word->versions, to->maxtext, to->libtpu);
}

bool adv_gate_is_refuted(const struct adv_gate_side *side)
{
    return side->word.known && strcmp(side->word.verdict, "does_not_fit") == 0 && !side->now.is_what_if;
}

/* A word of the compiler that says otherwise than the prediction, and is told by no reason: a limit that asks
 * for it tells a bad one. */
static void note_disagreement(const struct adv_gate_side *candidate, const struct adv_gate_limits *limits,
                              struct adv_gate_verdict *verdict)
{
    const struct adv_verification_word *word = &candidate->word;
    const bool compiles = word->known && strcmp(word->verdict, "compiles") == 0;
    if (!word->known || candidate->now.is_what_if || adv_gate_is_refuted(candidate) ||
        (limits->must_compile && !compiles) || compiles == candidate->now.fits)
        return;
    NOTE(verdict, "compiler_disagrees",
         "the candidate is predicted %s, and the compiler's verdict on it is %.16s (%.100s)",
         candidate->now.fits ? "to fit" : "not to fit", word->verdict, word->versions);
}

/* Whether a git_ref is the hash of a commit: see adv_store_baseline_find. */
static bool is_commit(const char *git_ref)
{
    const size_t length = strlen(git_ref);
    return length >= 7 && length <= 64 && strspn(git_ref, "0123456789abcdef") == length;
}

/* Others of the candidate's commit are no measure of it. Where one side names none, nobody can tell. */
static void note_stand_in(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                          struct adv_gate_verdict *verdict)
{
    char of[2 * ADV_LIMIT_NAME] = "";
    const bool is_told = is_commit(baseline->git_ref) && is_commit(candidate->git_ref);
    if (baseline->git_ref[0]) (void)snprintf(of, sizeof of, " with git_ref %.40s", baseline->git_ref);
    NOTE(verdict, "stand_in_baseline",
         "no baseline is set (PUT /v1/baselines/{project}/{label}): run %s, stored at %.40s%s, the last that "
         "passed a limit on time, stands in, and limits count from there%s",
         baseline->run_id, baseline->created_at, of,
         is_told ? "" : ". It may be of the candidate's own commit");
}

/* What is to be known of a baseline before anything is read off the comparison with it. */
static void note_baseline(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                          struct adv_gate_verdict *verdict)
{
    const struct adv_gate_numbers *from = &baseline->now;
    if (baseline->stands_in) note_stand_in(baseline, candidate, verdict);
    if (!from->fits)
        NOTE(verdict, "baseline_does_not_fit", "the baseline does not fit in memory any more");
    else if (adv_gate_is_refuted(baseline))
        NOTE(verdict, "baseline_does_not_fit",
             "the compiler says that the baseline does not fit in memory (%.100s)", baseline->word.versions);
    else if (baseline->word.known && strcmp(baseline->word.verdict, "refused") == 0)
        NOTE(verdict, "baseline_refused", "the compiler refuses the baseline (%.100s)",
             baseline->word.versions);
    if (from->over_vmem[0])
        NOTE(verdict, "baseline_kernel_over_vmem", "the baseline does not start: %.200s", from->over_vmem);
}

/* A plan that fits by the prediction, less surely than one that would be advised, and that the compiler has
 * said nothing of. */
static void note_tight(const char *name, const struct adv_gate_side *side, struct adv_gate_verdict *verdict)
{
    const struct adv_gate_numbers *now = &side->now;
    if (!adv_gate_is_tight(now) || (side->word.known && !now->is_what_if)) return;
    NOTE(verdict, "tight",
         "the %s is tight: with %.2f GiB per device it fits with a probability of %.2g. The real compiler "
         "knows: POST /v1/runs/{id}/verifications, and \"must_compile\": true",
         name, now->hbm_bytes_per_device / ADV_GIB, now->fit_probability);
}

/* What fails a gate that asks for it, and would be passed without a word by one that does not. */
static void note_memory(const struct adv_gate_side *candidate, const struct adv_gate_limits *limits,
                        struct adv_gate_verdict *verdict)
{
    static const char code[] = "candidate_does_not_fit";
    if (limits->must_fit) return;
    if (!candidate->now.fits)
        NOTE(
            verdict, code,
            "the candidate needs %.2f GiB per device and does not fit, which does not count: must_fit is false",
            candidate->now.hbm_bytes_per_device / ADV_GIB);
    else if (!limits->must_compile && adv_gate_is_refuted(candidate))
        NOTE(
            verdict, code,
            "the compiler says that the candidate does not fit (%.100s), which does not count: must_fit is false",
            candidate->word.versions);
    if (candidate->now.over_vmem[0])
        NOTE(verdict, code,
             "the candidate does not start, which does not count, as must_fit is false: %.200s",
             candidate->now.over_vmem);
}

/* What MaxText may refuse or pass over of the candidate is no change of time: the gate passes it. */
static void note_warnings(const struct adv_gate_numbers *now, struct adv_gate_verdict *verdict)
{
    if (now->warnings_count == 0) return;
    NOTE(
        verdict, "candidate_warnings",
        "the estimate of the candidate warns of %d thing%s, which no limit counts: %s. POST /v1/lint says whether "
        "MaxText takes it",
        now->warnings_count, now->warnings_count == 1 ? "" : "s",
        now->warnings[0] ? now->warnings : "POST /v1/estimate tells them");
}

static void note_differences(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                             struct adv_gate_verdict *verdict)
{
    const struct adv_gate_numbers *from = &baseline->now, *to = &candidate->now;
    if (candidate->run_id[0] && strcmp(candidate->run_id, baseline->run_id) == 0)
        NOTE(verdict, "same_run",
             "the candidate is the baseline: run %s is compared with itself, and nothing is told of a change",
             candidate->run_id);
    note_reevaluation("baseline", baseline, verdict);
    note_reevaluation("candidate", candidate, verdict);
    const char *outdated = to->outdated[0] ? to->outdated : from->outdated;
    if (outdated[0]) NOTE(verdict, "calibration_of_another_engine", "%s; fit it again", outdated);
    note_baseline(baseline, candidate, verdict);
    note_tight("baseline", baseline, verdict);
    note_tight("candidate", candidate, verdict);
    if (!same_model(from, to))
        NOTE(verdict, "unlike_model", "the models differ: %.60s instead of %.60s", to->model, from->model);
    if (!alike(from->sequence_tokens, to->sequence_tokens))
        NOTE(verdict, "unlike_sequence_length", "sequences have %.0f tokens instead of %.0f",
             to->sequence_tokens, from->sequence_tokens);
    if (!alike(from->tokens_per_step, to->tokens_per_step))
        NOTE(verdict, "other_batch", "a step trains %.0f tokens instead of %.0f: times are judged per token",
             to->tokens_per_step, from->tokens_per_step);
    if (!same_machine(from, to))
        NOTE(verdict, "other_machine",
             "the machines differ, %d x %.20s %.20s instead of %d x %.20s %.20s: the time per token is that "
             "of the whole machine, tokens per chip and dollars tell its price",
             to->slices, to->chip, to->topology, from->slices, from->chip, from->topology);
    note_terms(from, to, verdict);
    note_warnings(to, verdict);
    note_compiler(candidate, verdict);
}

/* Why there is no word of the compiler on the candidate. */
static void fail_unknown(const struct adv_gate_side *candidate, const char *code,
                         struct adv_gate_verdict *verdict)
{
    const struct adv_verification_word *word = &candidate->word;
    verdict->unknown_count++;
    if (candidate->now.is_what_if)
        FAIL(verdict, code,
             "the compiler knows the published hardware only: of a candidate on other (cluster.overrides) it "
             "cannot speak");
    else if (!word->versions[0])
        FAIL(verdict, code,
             "the compiler cannot be asked about the candidate: MaxText has no file for its model");
    else if (word->failure[0])
        FAIL(verdict, code,
             "the compiler was asked about the candidate and gave no verdict: %.200s. POST "
             "/v1/runs/{id}/verifications asks it again",
             word->failure);
    else if (word->is_waited_for)
        FAIL(verdict, code,
             "the compiler of %.100s has been asked about the candidate and has not answered yet: check "
             "again when GET /v1/runs/{id}/verifications says that it is done",
             word->versions);
    else
        FAIL(verdict, code,
             "the compiler of %.100s has not been asked about the candidate: POST "
             "/v1/runs/{id}/verifications, and check again",
             word->versions);
}

/* No word is not a good word: a gate that asks for proof fails without. */
static void fail_compile(const struct adv_gate_side *candidate, struct adv_gate_verdict *verdict)
{
    static const char code[] = "does_not_compile";
    const struct adv_verification_word *word = &candidate->word;
    if (!word->known || candidate->now.is_what_if)
        fail_unknown(candidate, code, verdict);
    else if (strcmp(word->verdict, "compiles") != 0)
        FAIL(verdict, code, "the compiler's verdict on the candidate is %.16s (%.100s)", word->verdict,
             word->versions);
}

/* The prediction, and the compiler's word where it was given; a limit of its own tells that word itself. */
static void fail_memory(const struct adv_gate_side *candidate, const struct adv_gate_limits *limits,
                        struct adv_gate_verdict *verdict)
{
    const struct adv_gate_numbers *to = &candidate->now;
    const double gib = to->hbm_bytes_per_device / ADV_GIB;
    if (!to->fits)
        FAIL(verdict, "does_not_fit", "the candidate needs %.2f GiB per device and does not fit", gib);
    else if (!limits->must_compile && adv_gate_is_refuted(candidate))
        FAIL(verdict, "does_not_fit",
             "the candidate is predicted to fit with %.2f GiB per device, and the compiler says that it does "
             "not (%.100s)",
             gib, candidate->word.versions);
    if (to->over_vmem[0])
        FAIL(verdict, "kernel_over_vmem", "the candidate does not start: %.200s", to->over_vmem);
}

void adv_gate_judge(const struct adv_gate_side *baseline, const struct adv_gate_side *candidate,
                    const struct adv_gate_limits *limits, struct adv_gate_verdict *verdict)
{
    const struct adv_gate_numbers *from = &baseline->now, *to = &candidate->now;
    memset(verdict, 0, sizeof *verdict);
    for (int i = 0; i < ADV_GATE_LIMITS; i++) {
        const enum adv_gate_limit limit = (enum adv_gate_limit)i;
        verdict->change_frac[i] = measure(to, limit) / measure(from, limit) - 1.0;
    }
    if (limits->must_fit) fail_memory(candidate, limits, verdict);
    if (limits->must_compile) fail_compile(candidate, verdict);
    for (int i = 0; i < ADV_GATE_LIMITS; i++) {
        const double worse = worsening(verdict, (enum adv_gate_limit)i);
        verdict->judges_time |= bounds_time(i, from, to) && !isnan(limits->frac[i]);
        if (!isnan(limits->frac[i]) && !(worse <= limits->frac[i] + SLACK_FRAC))
            fail_limit(from, to, (enum adv_gate_limit)i, limits->frac[i], verdict);
    }
    note_differences(baseline, candidate, verdict);
    note_memory(candidate, limits, verdict);
    note_disagreement(candidate, limits, verdict);
    note_interval(to, limits, verdict);
    note_no_limit(limits, verdict);
    verdict->pass = verdict->reasons_count == 0;
}
