#include "engine/emit/step_trace.h"

#include <ctype.h>
#include <string.h>

#include "engine/maxtext/run.h"
#include "engine/emit/script.h"

#define US_PER_S 1e6

/* A JSON string; control characters become spaces. */
static void put_string(struct adv_text *text, const char *string)
{
    adv_text_append(text, "\"");
    for (const char *at = string; *at; at++) {
        const char character = iscntrl((unsigned char)*at) ? ' ' : *at;
        if (character == '"' || character == '\\') adv_text_append(text, "\\");
        adv_text_append_bytes(text, &character, 1);
    }
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

/* The first term of the resource, which names its row. */
static int first_of(const struct adv_artifact_source *source, const char *resource)
{
    int first = 0;
    while (strcmp(source->terms[first].resource, resource) != 0) first++;
    return first;
}

void adv_step_trace_write(const struct adv_artifact_source *source, struct adv_text *text)
{
    enum { STEP_ROW = 1 }; /* rows of resources follow, numbered by their first term */
    double step_s = 0.0, busy_s[ADV_ARTIFACT_TERMS] = {0};
    adv_text_append(text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    put_row_name(text, STEP_ROW, "step: what it waits for");
    for (int i = 0; i < source->terms_count; i++) {
        const struct adv_artifact_term *term = &source->terms[i];
        const int first = first_of(source, term->resource), row = STEP_ROW + 1 + first;
        if (first == i) put_row_name(text, row, term->resource);
        put_event(text, row, term, busy_s[first], term->seconds);
        busy_s[first] += term->seconds;
        if (term->exposed_seconds <= 0.0) continue;
        put_event(text, STEP_ROW, term, step_s, term->exposed_seconds);
        step_s += term->exposed_seconds;
    }
    adv_text_append(text, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    struct adv_text name;
    adv_text_init(&name, text->limit_bytes);
    adv_text_format(&name, "%s on %s %s", source->model, source->chip, source->topology);
    put_string(text, name.data ? name.data : "");
    adv_text_free(&name);
    adv_text_append(text, "}}\n],\"otherData\":{\"maxtext_release\":\"" ADV_MAXTEXT_RELEASE "\"}}\n");
}
