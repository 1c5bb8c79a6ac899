/* cli_check.c: tpu-advisor check: candidates against a baseline, for pipelines. */
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/json/check_job.h"
#include "server/cli.h"
#include "server/cli_io.h"
#include "server/http_client.h"
#include "server/json_text.h"
#include "server/monotonic.h"
#include "server/request_id.h"

#define FILES_MAX          1000
#define TIMEOUT_S          60 /* of one candidate: a daemon that is deployed anew is away for less */
#define TIMEOUT_MAX_S      3600
#define FIRST_PAUSE_MS     500 /* between tries, doubled up to the last */
#define LAST_PAUSE_MS      8000
#define REPORT_LIMIT_BYTES (256u * 1024u * 1024u)

enum { EXIT_PASS = 0, EXIT_REGRESSION = 1, EXIT_BAD_INPUT = 2, EXIT_AWAY = 3 };

struct job {
    struct adv_check_spec spec;
    char baseline[2 * ADV_LIMIT_NAME];
    const char *url, *token;
    long timeout_s;                      /* of one candidate, with all tries */
    const char *markdown, *junit, *json; /* files; "-" is standard output */
    int files_count;
    char *files[FILES_MAX];
};

struct row {
    const char *file;
    int status;                     /* exit status of this candidate */
    struct adv_check_answer answer; /* json NULL: there is none, `message` says why */
    char *message;
};

static int usage(void)
{
    (void)fprintf(
        stderr,
        "usage: tpu-advisor check --baseline PROJECT/LABEL [--url URL] [--limit NAME=FRAC ...] FILE|GLOB "
        "...\n\n"
        "Compares each candidate with the baseline. A FILE is an estimate request (JSON, YAML) or a MaxText\n"
        "configuration (JSON, YAML, script). Exit status: 0 pass, 1 regression, 2 bad input, 3 the service "
        "is away\nor something else, as a login page, answers in its place.\n\n"
        "  --url URL             the daemon; or TPU_ADVISOR_URL. The token is TPU_ADVISOR_TOKEN's\n"
        "  --baseline P/L        project and label; --baseline-run ID names a run instead\n"
        "  --limit NAME=FRAC     0.03 is 3 %%, each name once: time_per_token_increase_frac (0.03 unless one is\n"
        "                        given), step_time_increase_frac, tokens_per_s_per_chip_decrease_frac,\n"
        "                        usd_per_token_increase_frac, hbm_increase_frac\n"
        "  --may-not-fit         a candidate that does not fit in memory is no failure by itself\n"
        "  --must-compile        the real compiler's word is asked for\n"
        "  --allow-unlike WHAT   model or sequence_length may differ\n"
        "  --accelerator NAME    v6e-256: for candidates that name no cluster\n"
        "  --store               candidates become runs of the baseline's project and label; with\n"
        "                        --baseline-run, of those that they name themselves\n"
        "  --git-ref REF         of those runs; or GITHUB_SHA, CI_COMMIT_SHA, GIT_COMMIT\n"
        "  --tag NAME            a tag of those runs, may be repeated\n"
        "  --timeout SECONDS     for one candidate (60): while the daemon refuses connections, drops them or is\n"
        "                        busy it is asked again, and stores the candidate once\n"
        "  --markdown FILE, --junit FILE, --json FILE   the report; - is standard output (Markdown, unless "
        "told)\n");
    return EXIT_BAD_INPUT;
}

/* False, and said: no gate. Above 100 % it is one, but 3 is mostly meant as 3 %, and stays green. */
static bool is_limit(const char *text, double frac)
{
    if (!isfinite(frac)) return false;
    const bool is_endless = frac >= 1 && strstr(text, "_decrease_");
    if (is_endless || frac > 1)
        (void)fprintf(stderr, "tpu-advisor: --limit %s allows %g %%%s; 3 %% is 0.03\n", text, 100 * frac,
                      is_endless ? ", which nothing can exceed" : "");
    return !is_endless;
}

static bool take_limit(void *context, char *text)
{
    struct job *job = context;
    char *equals = strchr(text, '=');
    char *end = NULL;
    if (!equals || job->spec.limits_count == ADV_LIMIT_CHECK_WORDS) return false;
    const double frac = strtod(equals + 1, &end);
    bool taken = end > equals + 1 && !*end && is_limit(text, frac);
    *equals = '\0';
    for (int i = 0; i < job->spec.limits_count; i++)
        taken = taken && strcmp(job->spec.limits[i].name, text) != 0;
    if (!taken) {
        *equals = '='; /* as it is said in the message */
        return false;
    }
    job->spec.limits[job->spec.limits_count].name = text;
    job->spec.limits[job->spec.limits_count++].frac = frac;
    return true;
}

/* project/label, of which the label may have slashes. */
static bool take_baseline(void *context, char *text)
{
    struct job *job = context;
    if (strlen(text) >= sizeof job->baseline || !strchr(text, '/')) return false;
    memcpy(job->baseline, text, strlen(text) + 1);
    char *slash = strchr(job->baseline, '/');
    *slash = '\0';
    job->spec.baseline_project = job->baseline;
    job->spec.baseline_label = slash + 1;
    return job->baseline[0] && slash[1];
}

static bool add_file(struct job *job, const char *path)
{
    char *copy = job->files_count < FILES_MAX ? strdup(path) : NULL;
    if (!copy) return false;
    job->files[job->files_count++] = copy;
    return true;
}

static bool add_files(struct job *job, const char *pattern)
{
    glob_t found = {0};
    const bool is_pattern = strpbrk(pattern, "*?[") && access(pattern, F_OK) != 0;
    const int failure = is_pattern ? glob(pattern, 0, NULL, &found) : -1;
    if (failure == -1) return add_file(job, pattern);
    bool good = failure == 0;
    if (!good) (void)fprintf(stderr, "tpu-advisor: no file matches %s\n", pattern);
    for (size_t i = 0; good && i < found.gl_pathc; i++) good = add_file(job, found.gl_pathv[i]);
    globfree(&found);
    return good;
}

/* The commit by the variables that GitHub, GitLab and Jenkins set; NULL: none does. */
static const char *git_ref_of_pipeline(void)
{
    static const char *const names[] = {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return value;
    }
    return NULL;
}

/* What contradicts itself; false: something does. */
static bool check_together(const struct job *job)
{
    const char *const reports[] = {job->markdown, job->junit, job->json};
    int to_stdout = 0;
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        to_stdout += reports[i] && strcmp(reports[i], "-") == 0;
    if (to_stdout > 1) (void)fprintf(stderr, "tpu-advisor: only one report goes to standard output\n");
    const bool two_baselines = job->spec.baseline_run_id && job->spec.baseline_project;
    if (two_baselines)
        (void)fprintf(stderr, "tpu-advisor: --baseline or --baseline-run names the baseline, not both\n");
    return to_stdout <= 1 && !two_baselines;
}

static bool read_arguments(int argc, char **argv, struct job *job)
{
    struct adv_check_spec *spec = &job->spec;
    const struct adv_cli_option options[] = {
        {"--url", .text = &job->url},
        {"--baseline", .take = take_baseline, .context = job},
        {"--baseline-run", .text = &spec->baseline_run_id},
        {"--limit", .take = take_limit, .context = job},
        {"--may-not-fit", .flag = &spec->may_not_fit},
        {"--must-compile", .flag = &spec->must_compile},
        {"--allow-unlike", .text = spec->unlike, .count = &spec->unlike_count, .most = ADV_LIMIT_CHECK_WORDS},
        {"--accelerator", .text = &spec->accelerator},
        {"--store", .flag = &spec->store},
        {"--git-ref", .text = &spec->git_ref},
        {"--tag", .text = spec->tags, .count = &spec->tags_count, .most = ADV_LIMIT_CHECK_WORDS},
        {"--timeout", .number = &job->timeout_s, .most = TIMEOUT_MAX_S},
        {"--markdown", .text = &job->markdown},
        {"--junit", .text = &job->junit},
        {"--json", .text = &job->json},
        {.name = NULL}};
    job->timeout_s = TIMEOUT_S;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "without a value";
        if (strncmp(name, "--", 2) != 0) {
            if (!add_files(job, name)) return false;
        } else if (adv_cli_take_option(options, argc, argv, &i) != ADV_CLI_TAKEN) {
            if (strcmp(name, "--help") != 0)
                (void)fprintf(stderr, "tpu-advisor: %s %s is not understood\n", name, value);
            return false;
        }
    }
    if (!job->spec.git_ref) job->spec.git_ref = git_ref_of_pipeline();
    if (!job->url) job->url = getenv("TPU_ADVISOR_URL");
    job->token = getenv("TPU_ADVISOR_TOKEN");
    if (job->token && !*job->token) job->token = NULL;
    if (!job->url) (void)fprintf(stderr, "tpu-advisor: where the daemon is says --url or TPU_ADVISOR_URL\n");
    if (!job->spec.baseline_run_id && !job->spec.baseline_project)
        (void)fprintf(stderr, "tpu-advisor: --baseline PROJECT/LABEL is missing\n");
    if (job->files_count == 0) (void)fprintf(stderr, "tpu-advisor: no candidate is given\n");
    if (job->spec.limits_count == 0) {
        job->spec.limits[0].name = "time_per_token_increase_frac";
        job->spec.limits[0].frac = 0.03;
        job->spec.limits_count = 1;
    }
    return job->url && (job->spec.baseline_run_id || job->spec.baseline_project) && job->files_count > 0 &&
           check_together(job);
}

static bool is_away(int status)
{
    return status >= 500 || status == 429 || status == 408;
}

/* How long to wait before the next try, in ms: what the service asks for, but no longer than the last pause.
 */
static long pause_before(int tries, const struct adv_client_answer *answer)
{
    long pause_ms = FIRST_PAUSE_MS;
    while (--tries > 0 && pause_ms < LAST_PAUSE_MS) pause_ms *= 2;
    if (answer->retry_after_s * 1000L > pause_ms) pause_ms = answer->retry_after_s * 1000L;
    return pause_ms < LAST_PAUSE_MS ? pause_ms : LAST_PAUSE_MS;
}

/* Asks, and again while nobody takes the connection, as of a daemon that starts anew, or the service says
 * that it is busy; under one key, so that a candidate is stored once. What has begun to answer is not asked
 * again. */
static adv_code ask(const struct job *job, const char *body, struct adv_client_answer *answer, adv_err *err)
{
    char key[ADV_UUID_BYTES];
    const int64_t end_us = adv_monotonic_us() + job->timeout_s * INT64_C(1000000);
    adv_uuid_make(key);
    for (int tries = 1;; tries++) {
        adv_err found = adv_err_empty();
        const int64_t left_us = end_us - adv_monotonic_us();
        const int left_s = left_us > 1000000 ? (int)((left_us + 999999) / 1000000) : 1;
        const adv_code code =
            adv_client_ask(job->url, "/v1/checks", job->token, body, key, left_s, answer, &found);
        /* a daemon without a database asks for an hour */
        const bool is_over =
            code ? !answer->unanswered : !is_away(answer->status) || answer->retry_after_s > job->timeout_s;
        const long pause_ms = pause_before(tries, answer);
        if (is_over || adv_monotonic_us() + pause_ms * 1000 >= end_us) {
            adv_err_merge(err, &found, "");
            return code;
        }
        if (tries == 1)
            (void)fprintf(stderr, "tpu-advisor: %s; it is asked again for %ld s at most\n",
                          code ? found.findings[0].detail : "the service is busy", job->timeout_s);
        free(answer->body);
        answer->body = NULL;
        adv_monotonic_sleep(pause_ms);
    }
}

static void say_findings(const adv_err *err, struct row *row)
{
    row->message = strdup(err->count ? err->findings[0].detail : "");
    for (int i = 0; i < err->count; i++)
        (void)fprintf(stderr, "tpu-advisor: %s: %s%s%s\n", row->file, err->findings[i].detail,
                      err->findings[i].hint[0] ? "; " : "", err->findings[i].hint);
}

static int take_refusal(const struct adv_client_answer *answer, struct row *row)
{
    char *lines = adv_check_problem_lines(answer->body, answer->body_bytes);
    const size_t length = strlen(row->file) + 64 + (lines ? strlen(lines) : 0);
    row->message = malloc(length);
    if (row->message)
        (void)snprintf(row->message, length, "HTTP status %d: %s", answer->status,
                       lines ? lines : "no reason given");
    (void)fprintf(stderr, "tpu-advisor: %s: %s\n", row->file, row->message ? row->message : "");
    free(lines);
    /* 401, 403 and 404 are the caller's: another token, project or label. */
    return is_away(answer->status) ? EXIT_AWAY : EXIT_BAD_INPUT;
}

/* A login page, a redirect to one, or what else answers where the daemon should. */
static int take_stranger(const struct adv_client_answer *answer, adv_err *err)
{
    char what[2 * ADV_LIMIT_URL_BYTES] = "";
    if (answer->location[0])
        adv_append(what, sizeof what, ", which leads to %s", answer->location);
    else if (answer->media_type[0])
        adv_append(what, sizeof what, " with %s", answer->media_type);
    (void)adv_err_add(err, ADV_E_IO, "",
                      "let --url name the daemon itself, or open the way to it: a login page or another "
                      "service may stand before it",
                      "what answers is no daemon: HTTP status %d%s, and no verdict", answer->status, what);
    return EXIT_AWAY;
}

/* A page for people: whatever its status, it is not what a daemon says. */
static bool is_stranger(const struct adv_client_answer *answer)
{
    return answer->status < 400 || (!is_away(answer->status) && !strcasecmp(answer->media_type, "text/html"));
}

static int check_file(const struct job *job, struct row *row)
{
    adv_err err = adv_err_empty();
    size_t text_bytes = 0;
    char *body = NULL;
    struct adv_client_answer answer = {0};
    char *text = adv_cli_read_file(row->file, &text_bytes, &err);
    int status = EXIT_BAD_INPUT;
    if (text && !adv_check_body(&job->spec, text, text_bytes, &body, &err)) {
        const adv_code code = ask(job, body, &answer, &err);
        if (code)
            status = code == ADV_E_INVALID ? EXIT_BAD_INPUT : EXIT_AWAY;
        else if (answer.status == 200 && adv_check_answer_read(answer.body, answer.body_bytes, &row->answer))
            status = row->answer.pass ? EXIT_PASS : EXIT_REGRESSION;
        else
            status = is_stranger(&answer) ? take_stranger(&answer, &err) : take_refusal(&answer, row);
    }
    if (err.count) say_findings(&err, row);
    free(answer.body);
    free(body);
    free(text);
    return status;
}

/* ---- the report of all checks as one: Markdown, JUnit, JSON ---- */

static int count_passed(const struct row *rows, int rows_count)
{
    int passed = 0;
    for (int i = 0; i < rows_count; i++) passed += rows[i].status == 0;
    return passed;
}

/* The run that all after the first are held to by its id, so that the service has no note on them. */
static const char *stand_in_of(const struct row *rows, int rows_count)
{
    for (int i = 0; i < rows_count; i++)
        if (rows[i].answer.stand_in_run_id) return rows[i].answer.stand_in_run_id;
    return NULL;
}

static void print_markdown(const struct row *rows, int rows_count, struct adv_text *text)
{
    const char *stand_in = stand_in_of(rows, rows_count);
    adv_text_format(text, "# TPU Advisor: %d of %d candidates pass\n", count_passed(rows, rows_count),
                    rows_count);
    if (stand_in && rows_count > 1)
        adv_text_format(text, "\nNo run is set as the baseline: run %s stands in for it in all of them.\n",
                        stand_in);
    for (int i = 0; i < rows_count; i++) {
        adv_text_append(text, "\n### ");
        adv_markdown_text(text, rows[i].file, ADV_MARKDOWN_MARKS "#");
        adv_text_append(text, "\n\n");
        if (rows[i].answer.markdown) {
            adv_text_append(text, rows[i].answer.markdown);
            continue;
        }
        adv_text_append(text, rows[i].status == 3 ? "Not checked, the service is away: " : "Not checked: ");
        adv_markdown_text(text, rows[i].message, ADV_MARKDOWN_MARKS "#");
        adv_text_append(text, "\n");
    }
}

/* The service's suite, under the file's name: what follows `name="tpu-advisor"` in it. */
static void put_suite(struct adv_text *text, const struct row *row)
{
    static const char start[] = "<testsuite name=\"tpu-advisor\"";
    const char *suite = row->answer.junit ? strstr(row->answer.junit, start) : NULL;
    adv_text_append(text, "<testsuite name=\"");
    adv_xml_text(text, row->file);
    if (suite) {
        adv_text_append(text, "\"");
        adv_text_append(text, suite + sizeof start - 1);
        return;
    }
    adv_text_append(text,
                    "\" tests=\"1\" failures=\"0\" errors=\"1\">\n  <testcase classname=\"check\" name=\"the "
                    "candidate is checked\"><error message=\"");
    adv_xml_text(text, row->message);
    adv_text_append(text, "\"/></testcase>\n</testsuite>\n");
}

static void print_junit(const struct row *rows, int rows_count, struct adv_text *text)
{
    adv_text_append(text,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tpu-advisor check\">\n");
    for (int i = 0; i < rows_count; i++) put_suite(text, &rows[i]);
    adv_text_append(text, "</testsuites>\n");
}

/* {"verdict": "pass"|"fail"|"error", "checks": [{"file", "status", "check": the answer | null, "message"?}]}
 */
static void print_json(const struct row *rows, int rows_count, struct adv_text *text)
{
    static const char *const states[] = {"pass", "fail", "bad_input", "away"};
    int worst = 0;
    for (int i = 0; i < rows_count; i++) worst = rows[i].status > worst ? rows[i].status : worst;
    adv_text_append(text, "{");
    adv_json_text_string(text, "verdict", worst == 0 ? "pass" : worst == 1 ? "fail" : "error");
    adv_json_text_raw(text, "checks", "[");
    for (int i = 0; i < rows_count; i++) {
        adv_text_append(text, i ? ",{" : "{");
        adv_json_text_string(text, "file", rows[i].file);
        adv_json_text_string(text, "status", states[rows[i].status]);
        if (rows[i].message) adv_json_text_string(text, "message", rows[i].message);
        adv_json_text_raw(text, "check", rows[i].answer.json);
        adv_text_append(text, "}");
    }
    adv_text_append(text, "]}\n");
}

static bool write_report(const char *path, void (*print)(const struct row *, int, struct adv_text *),
                         const struct row *rows, int rows_count)
{
    if (!path) return true;
    struct adv_text text = adv_text_empty(REPORT_LIMIT_BYTES);
    print(rows, rows_count, &text);
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    bool good = file && !text.overflow && fwrite(text.data, 1, text.length_bytes, file) == text.length_bytes;
    if (file) good = (file == stdout ? fflush(file) : fclose(file)) == 0 && good;
    if (!good) (void)fprintf(stderr, "tpu-advisor: cannot write %s: %s\n", path, strerror(errno));
    adv_text_free(&text);
    return good;
}

/* Where the service is away the others are not asked for; the reports have them all the same. */
static void skip_others(const struct job *job, struct row *rows, int asked)
{
    for (int i = asked; i < job->files_count; i++) {
        rows[i].file = job->files[i];
        rows[i].status = EXIT_AWAY;
        rows[i].message = strdup("not asked for, after what came in place of an answer for one before it");
    }
    if (asked < job->files_count)
        (void)fprintf(stderr, "tpu-advisor: the other %d candidates are not asked for\n",
                      job->files_count - asked);
}

static int run(struct job *job, struct row *rows)
{
    int worst = EXIT_PASS, asked = 0;
    while (asked < job->files_count && worst != EXIT_AWAY) {
        struct row *row = &rows[asked];
        row->file = job->files[asked++];
        row->status = check_file(job, row);
        /* One that passes and is stored would stand in for the next: all are held to the same run. */
        if (row->answer.stand_in_run_id) job->spec.stand_in_run_id = row->answer.stand_in_run_id;
        if (row->status > worst) worst = row->status;
    }
    skip_others(job, rows, asked);
    const char *markdown = job->markdown || job->junit || job->json ? job->markdown : "-";
    bool written = write_report(markdown, print_markdown, rows, job->files_count);
    written = write_report(job->junit, print_junit, rows, job->files_count) && written;
    written = write_report(job->json, print_json, rows, job->files_count) && written;
    return written || worst == EXIT_AWAY ? worst : EXIT_BAD_INPUT;
}

int adv_cli_check(int argc, char **argv)
{
    struct job *job = calloc(1, sizeof *job);
    struct row *rows = NULL;
    if (!job) return EXIT_BAD_INPUT;
    int status = EXIT_BAD_INPUT;
    if (!read_arguments(argc, argv, job))
        status = usage();
    else if ((rows = calloc((size_t)job->files_count, sizeof *rows)))
        status = run(job, rows);
    for (int i = 0; rows && i < job->files_count; i++) {
        adv_check_answer_free(&rows[i].answer);
        free(rows[i].message);
    }
    for (int i = 0; i < job->files_count; i++) free(job->files[i]);
    free(rows);
    free(job);
    return status;
}
