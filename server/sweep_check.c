#include "server/sweep_check.h"

#include <stdio.h>
#include <string.h>

#include "engine/json/question.h"
#include "server/app.h"
#include "server/keep.h"

#define LISTED_COUNT 50   /* listed requests that are read */
#define READ_MOST    1000 /* requests of a grid that are read: they take some tenths of a second */

/* One look at the requests of a sweep. */
struct look {
    struct adv_exchange *exchange;
    const struct adv_sweep_request *request;
    int read_count;
};

/* A budget for reading only: over from the second question on. The first comes before the request is read. */
static bool is_read(void *closure)
{
    int *asked = closure;
    return (*asked)++ > 0;
}

static bool may_go_on(const struct look *look)
{
    return look->read_count < READ_MOST && !adv_budget_over(&look->exchange->budget);
}

/* Whether a request is of the sweep's project, or of none; one of another would fail in its turn. */
static bool is_within(const struct look *look, const char *text, adv_err *found)
{
    struct adv_answer named = {0};
    struct adv_question question;
    const bool is_named = look->request->project[0] != '\0';
    const char *project = is_named ? look->request->project : look->exchange->project;
    if (!*project || !adv_question_read(text, strlen(text), &question)) return true;
    memcpy(named.project, question.project, sizeof named.project);
    adv_question_free(&question);
    return adv_keep_within(is_named ? "sweep" : "token", project, &named, found) == ADV_OK;
}

/* Whether the engine takes the request of an item; what is wrong with it, where the sweep says it. */
static bool is_taken(struct look *look, int item, adv_err *found)
{
    int asked = 0;
    const struct adv_app *app = look->exchange->app;
    const char *text = look->request->items[item];
    const struct adv_budget reading = {
        .over = is_read, .closure = &asked, .plans_max = (int)adv_app_live(app)->plans_count};
    struct adv_answer answer;
    adv_err_init(found);
    look->read_count++;
    const adv_code code =
        adv_answer_within(app->catalog, look->request->kind, text, strlen(text), &reading, &answer, found);
    if (!code) adv_answer_free(&answer);
    if (!code || code == ADV_E_TIMEOUT) {
        adv_err_init(found); /* that the budget was over is no finding */
        if (is_within(look, text, found)) return true;
    }
    adv_sweep_request_point(look->request, item, found);
    return false;
}

/* Keeps those findings that lie in one value of an axis. */
static void keep_within(const char *value_pointer, adv_err *err)
{
    const size_t length = strlen(value_pointer);
    int kept = 0;
    for (int i = 0; i < err->count; i++) {
        const char *pointer = err->findings[i].pointer;
        if (strncmp(pointer, value_pointer, length) != 0 || (pointer[length] && pointer[length] != '/'))
            continue;
        if (kept != i) err->findings[kept] = err->findings[i];
        kept++;
    }
    err->count = kept;
    err->code = kept > 0 ? err->findings[0].code : ADV_OK;
}

/* Whether a value of `axis` is refused beside all combinations of the other axes but `tried`, which was. What
 * is not looked at, because there are too many, counts as taken. */
static bool is_never_taken(struct look *look, int axis, int place, int tried)
{
    adv_err ignored;
    for (int item = 0; item < look->request->items_count; item++) {
        if (item == tried || adv_sweep_request_item(look->request, item, axis, place) != item) continue;
        if (!may_go_on(look) || is_taken(look, item, &ignored)) return false;
    }
    return true;
}

/* A value of an axis, beside the first values of the others; not the first, which the first item has. */
static void check_value(struct look *look, int axis, int place, adv_err *err)
{
    adv_err found;
    char pointer[ADV_LIMIT_POINTER + 16];
    const int item = adv_sweep_request_item(look->request, 0, axis, place);
    if (is_taken(look, item, &found)) return;
    (void)snprintf(pointer, sizeof pointer, "%s/%d", ADV_AT("/grid/axes", look->request->axes[axis]), place);
    keep_within(pointer, &found);
    if (found.count > 0 && is_never_taken(look, axis, place, item)) adv_err_merge(err, &found, "");
}

/* Which axis of several values the finding lies in; -1: none. */
static int axis_of(const struct adv_sweep_request *request, const struct adv_finding *finding)
{
    for (int axis = 0; axis < request->axes_count; axis++) {
        const char *pointer = ADV_AT("/grid/axes", request->axes[axis]);
        const size_t length = strlen(pointer);
        if (request->values_counts[axis] > 1 && strncmp(finding->pointer, pointer, length) == 0 &&
            (finding->pointer[length] == '/' || finding->pointer[length] == '\0'))
            return axis;
    }
    return -1;
}

/* A key that MaxText does not have is passed over with a warning in each answer, as forks have keys of their
 * own. All values of an axis over it would have one answer: it is a slip. */
static void check_keys(const struct look *look, adv_err *err)
{
    static const char strict[] = "{\"strict\":true,";
    int asked = 0;
    const struct adv_app *app = look->exchange->app;
    const struct adv_budget reading = {
        .over = is_read, .closure = &asked, .plans_max = (int)adv_app_live(app)->plans_count};
    struct adv_text text = adv_text_empty(ADV_LIMIT_BODY_BYTES);
    struct adv_answer answer;
    adv_err found = adv_err_empty();
    adv_text_append(&text, strict);
    adv_text_append(&text, look->request->items[0] + 1);
    if (!text.overflow && adv_answer_within(app->catalog, look->request->kind, text.data, text.length_bytes,
                                            &reading, &answer, &found) == ADV_OK)
        adv_answer_free(&answer);
    adv_text_free(&text);
    adv_sweep_request_point(look->request, 0, &found);
    for (int i = 0; i < found.count; i++) {
        const struct adv_finding *finding = &found.findings[i];
        const int axis = axis_of(look->request, finding);
        if (axis < 0 || !finding->rule || strcmp(finding->rule, "unknown-key") != 0) continue;
        (void)adv_err_add_rule(err, ADV_E_INVALID, finding->rule,
                               ADV_AT("/grid/axes", look->request->axes[axis]), finding->hint,
                               "%.150s: no answer would change with it", finding->detail);
    }
}

void adv_sweep_check(struct adv_exchange *exchange, const struct adv_sweep_request *request, adv_err *err)
{
    struct look look = {.exchange = exchange, .request = request};
    adv_err found;
    const int first_count = request->is_grid                      ? 1
                            : request->items_count < LISTED_COUNT ? request->items_count
                                                                  : LISTED_COUNT;
    for (int i = 0; i < first_count && may_go_on(&look); i++)
        if (!is_taken(&look, i, &found)) adv_err_merge(err, &found, "");
    if (request->is_grid && !err->code) check_keys(&look, err);
    for (int axis = 0; axis < request->axes_count; axis++)
        for (int place = 1; place < request->values_counts[axis] && may_go_on(&look); place++)
            check_value(&look, axis, place, err);
}
