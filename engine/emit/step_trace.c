#include "engine/emit/script.h"

#include "engine/maxtext/run.h"
#include "engine/explain/step_view.h"

#define US_PER_S 1e6

/* A JSON string. */
static void put_string(struct adv_text *text, const char *string)
{
    adv_text_append(text, "\"");
    adv_script_escape(text, string, "\"\\", "\\");
    adv_text_append(text, "\"");
}

static void put_row_name(struct adv_text *text, int row, const char *name)
{
    adv_text_format(text,
                    "{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", row);
    put_string(text, name);
    adv_text_append(text, "}},\n");
}

static void put_event(struct adv_text *text, int row, const struct adv_artifact_term *term, double start_s,
                      double duration_s)
{
    adv_text_format(text, "{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":", row,
                    start_s * US_PER_S, duration_s * US_PER_S);
    put_string(text, term->name);
    adv_text_append(text, ",\"cat\":");
    put_string(text, term->resource);
    adv_text_format(text, ",\"args\":{\"seconds\":%.9g,\"exposed_seconds\":%.9g}},\n", term->seconds,
                    term->exposed_seconds);
}

/* Rows as they stand below one another: what the step waits for, the lanes of a layer, and ICI that no layer
 * uses. */
enum { STEP_ROW = 1, LANE_ROW = 2, ROWS = LANE_ROW + ADV_LANE_COUNT + 1 };

static const char *row_title(int row)
{
    if (row == STEP_ROW) return "step: what it waits for";
    return row == ROWS - 1 ? "ICI: data, stage" : adv_view_lane_title((enum adv_view_lane)(row - LANE_ROW));
}

static int row_of(const struct adv_artifact_term *term)
{
    return LANE_ROW + (int)adv_view_lane_of(term->name, term->resource);
}

void adv_step_trace_write(const struct adv_artifact_source *source, struct adv_text *text)
{
    double busy_s[ROWS] = {0};
    bool is_used[ROWS] = {[STEP_ROW] = true};
    adv_text_append(text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (int i = 0; i < source->terms_count; i++) is_used[row_of(&source->terms[i])] = true;
    for (int row = STEP_ROW; row < ROWS; row++)
        if (is_used[row]) put_row_name(text, row, row_title(row));
    for (int i = 0; i < source->terms_count; i++) {
        const struct adv_artifact_term *term = &source->terms[i];
        const int row = row_of(term);
        put_event(text, row, term, busy_s[row], term->seconds);
        busy_s[row] += term->seconds;
        if (term->exposed_seconds <= 0.0) continue;
        put_event(text, STEP_ROW, term, busy_s[STEP_ROW], term->exposed_seconds);
        busy_s[STEP_ROW] += term->exposed_seconds;
    }
    adv_text_append(text, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    struct adv_text name = adv_text_empty(text->limit_bytes);
    adv_text_format(&name, "%s on %s %s", source->model, source->chip, source->topology);
    put_string(text, name.data ? name.data : "");
    adv_text_free(&name);
    adv_text_append(text, "}}\n],\"otherData\":{\"maxtext_release\":\"");
    adv_maxtext_release(source->maxtext, text);
    adv_text_append(text, "\"}}\n");
}
