/* store_run_list.c: pages of runs: one statement with the filters that are given, in the order that is asked
 * for. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/decode_bodies.h"
#include "server/json_text.h"
#include "server/store_runs.h"

#define LONGEST_KEY     40 /* of a cursor: a time or a number */
#define STATEMENT_BYTES 8192

void adv_run_row_print(const struct adv_rows *rows, int row, struct adv_text *json)
{
    static const char *const names[] = {
        "run_id", "created_at", "kind",           "project",      "label",       "git_ref",   "model",
        "chip",   "topology",   "engine_version", "catalog_hash", "reevaluates", "deleted_at"};
    adv_text_append(json, "{");
    for (int i = 0; i < ADV_RUN_STEP_TIME; i++) {
        const char *value = adv_rows_text(rows, row, i);
        adv_json_text_string(json, names[i], value && *value ? value : NULL);
    }
    adv_json_text_number(json, "step_time_s", adv_rows_number(rows, row, ADV_RUN_STEP_TIME));
    adv_json_text_number(json, "hbm_bytes_per_device", adv_rows_number(rows, row, ADV_RUN_HBM));
    const char *fits = adv_rows_text(rows, row, ADV_RUN_FITS);
    adv_json_text_raw(json, "fits", !fits ? NULL : *fits == 't' ? "true" : "false");
    adv_json_text_string(json, "fit_verdict", adv_rows_text(rows, row, ADV_RUN_FIT_VERDICT));
    adv_json_text_raw(json, "tags", adv_rows_text(rows, row, ADV_RUN_TAGS));
}

/* An order: a column that has an index for each filter, and the id where rows are equal. */
struct order {
    const char *column, *type;
    const char *key;  /* the column as a cursor has it */
    const char *rows; /* which are in the order; the words of the indexes' own condition */
    bool is_time;
};

static const struct order orders[] = {
    {"created_at", "timestamptz", "to_char(created_at" ADV_AS_TIME, "deleted_at IS NULL", true},
    {"step_time_s", "float8", "step_time_s::text", "deleted_at IS NULL AND step_time_s IS NOT NULL", false},
    {"hbm_bytes_per_device", "float8", "hbm_bytes_per_device::text",
     "deleted_at IS NULL AND hbm_bytes_per_device IS NOT NULL", false},
};
static const struct order order_deleted = {"deleted_at", "timestamptz", "to_char(deleted_at" ADV_AS_TIME,
                                           "deleted_at IS NOT NULL", true};

static const struct order *find_order(const struct adv_run_filter *filter, bool *falls, adv_err *err)
{
    const char *name = filter->sort ? filter->sort : filter->deleted ? "-deleted_at" : "-created_at";
    *falls = *name == '-';
    name += *falls;
    if (filter->deleted && *falls && strcmp(name, order_deleted.column) == 0) return &order_deleted;
    for (size_t i = 0; i < sizeof orders / sizeof *orders && !filter->deleted; i++)
        if (strcmp(name, orders[i].column) == 0) return &orders[i];
    (void)adv_err_add(err, ADV_E_BAD_REQUEST, "/query/sort",
                      filter->deleted ? "deleted runs come last deleted first"
                                      : "created_at, step_time_s or hbm_bytes_per_device; with - in front, "
                                        "descending",
                      "there is no order '%.40s'", filter->sort);
    return NULL;
}

static bool is_key(const struct order *order, const char *key)
{
    char *end = NULL;
    if (order->is_time) return adv_looks_like_time(key);
    return isfinite(strtod(key, &end)) && end != key && *end == '\0';
}

/* A cursor is ORDER~KEY~ID of the last row of its page. */
static bool read_cursor(const struct order *order, bool falls, const char *cursor, char key[LONGEST_KEY],
                        char id[ADV_UUID_BYTES])
{
    char head[64];
    const int length = snprintf(head, sizeof head, "%s%s~", falls ? "-" : "", order->column);
    if (strncmp(cursor, head, (size_t)length) != 0) return false;
    const char *from = cursor + length, *to = strchr(from, '~');
    if (!to || to - from >= LONGEST_KEY || !adv_uuid_valid(to + 1)) return false;
    (void)snprintf(key, LONGEST_KEY, "%.*s", (int)(to - from), from);
    (void)snprintf(id, ADV_UUID_BYTES, "%s", to + 1);
    return is_key(order, key);
}

static void print_cursor(const struct order *order, bool falls, const struct adv_rows *rows, int row,
                         struct adv_text *json)
{
    char cursor[64 + LONGEST_KEY + ADV_UUID_BYTES];
    size_t length = (size_t)snprintf(cursor, sizeof cursor, "%s%s~", falls ? "-" : "", order->column);
    for (const char *at = adv_rows_text(rows, row, ADV_RUN_REQUEST); *at && length < 64 + LONGEST_KEY; at++)
        if (*at != '+') cursor[length++] = *at; /* a blank in a query; 1e20 is 1e+20 all the same */
    (void)snprintf(cursor + length, sizeof cursor - length, "~%s", adv_rows_text(rows, row, ADV_RUN_ID));
    adv_json_text_string(json, "next_cursor", cursor);
}

static void print_page(const struct order *order, bool falls, const struct adv_rows *rows, int limit_count,
                       struct adv_text *json)
{
    const int shown = rows->count > limit_count ? limit_count : rows->count;
    adv_text_append(json, "{\"runs\":[");
    for (int i = 0; i < shown; i++) {
        if (i) adv_text_append(json, ",");
        adv_run_row_print(rows, i, json);
        adv_text_append(json, "}");
    }
    adv_text_append(json, "]");
    if (rows->count > shown)
        print_cursor(order, falls, rows, shown - 1, json);
    else
        adv_json_text_raw(json, "next_cursor", NULL);
    adv_text_append(json, "}");
}

#define IS_FOUND                                                                                             \
    "($8::text IS NULL OR run_words(ARRAY[project, label, git_ref, model, chip, topology, kind] || tags) "   \
    "@@ "                                                                                                    \
    "run_search($8)) AND ($9::text IS NULL OR tags @> string_to_array($9, ','))"
#define NEAR_ROWS "1000" /* 30 ms; what one run in twenty has fills a page from them */

/* The rows that match, but for words and tags. Filters that are not given fall away before the statement is
 * planned: its values are known then. */
static void write_conditions(const struct order *order, bool falls, struct adv_text *sql)
{
    static const char *const filters[] = {"project", "label", "git_ref", "model", "chip", "kind"};
    adv_text_append(sql, order->rows);
    for (int i = 0; i < (int)(sizeof filters / sizeof *filters); i++)
        adv_text_format(sql, " AND ($%d::text IS NULL OR %s = $%d)", i + 1, filters[i], i + 1);
    adv_text_format(sql,
                    " AND ($7::timestamptz IS NULL OR created_at >= $7::timestamptz) AND ($10::%s IS NULL OR "
                    "(%s, id) %c ($10::%s, $11::uuid))",
                    order->type, order->column, falls ? '<' : '>', order->type);
}

/* Of words and tags, the planner does not know how rare they are: so the rows at hand are looked at first,
 * and where they do not fill the page, all that their index has, put in order after (greatest() keeps the
 * planner from walking all rows in order, in the hope of a page). */
static void write_search(const struct order *order, bool falls, struct adv_text *sql)
{
    const char *way = falls ? "DESC" : "ASC";
    adv_text_append(sql, "WITH near AS MATERIALIZED (SELECT * FROM (SELECT * FROM runs WHERE ");
    write_conditions(order, falls, sql);
    adv_text_format(sql,
                    " ORDER BY %s %s, id %s LIMIT " NEAR_ROWS ") w WHERE " IS_FOUND
                    " ORDER BY %s %s, id %s LIMIT $12::int), far AS MATERIALIZED (SELECT * FROM runs WHERE ",
                    order->column, way, way, order->column, way, way);
    write_conditions(order, falls, sql);
    adv_text_format(
        sql,
        " AND " IS_FOUND " AND (SELECT count(*) FROM near) < $12::int ORDER BY greatest(%s, %s) %s, id "
        "%s LIMIT $12::int) SELECT " ADV_RUN_ROW_COLUMNS ", %s AS key FROM (SELECT * FROM near WHERE "
        "(SELECT count(*) FROM near) >= $12::int UNION ALL SELECT * FROM far) found ORDER BY %s %s, id %s",
        order->column, order->column, way, way, order->key, order->column, way, way);
}

/* One row more than asked tells whether there is another page. */
static void write_statement(const struct order *order, bool falls, bool is_search, struct adv_text *sql)
{
    const char *way = falls ? "DESC" : "ASC";
    if (is_search) {
        write_search(order, falls, sql);
        return;
    }
    adv_text_format(sql,
                    "SELECT " ADV_RUN_ROW_COLUMNS
                    ", %s AS key FROM runs WHERE ($8::text IS NULL AND $9::text IS NULL) AND ",
                    order->key);
    write_conditions(order, falls, sql);
    adv_text_format(sql, " ORDER BY %s %s, id %s LIMIT $12::int", order->column, way, way);
}

adv_code adv_store_runs_list(struct adv_db *db, const struct adv_run_filter *filter, struct adv_text *json,
                             adv_err *err)
{
    char key[LONGEST_KEY], id[ADV_UUID_BYTES];
    bool falls = false;
    const struct order *order = find_order(filter, &falls, err);
    if (!order) return err->code;
    if (filter->cursor && !read_cursor(order, falls, filter->cursor, key, id))
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/cursor",
                           "use next_cursor of the page before, with the same sort",
                           "this is not a cursor of this list");
    struct adv_text sql = adv_text_empty(STATEMENT_BYTES);
    struct adv_rows rows;
    write_statement(order, falls, filter->words || filter->tags, &sql);
    adv_err database = adv_err_empty();
    adv_code code =
        sql.overflow
            ? adv_err_add(&database, ADV_E_MEMORY, "", NULL, "no memory for the statement")
            : adv_db_run(db, sql.data,
                         ADV_VALUES(filter->project, filter->label, filter->git_ref, filter->model,
                                    filter->chip, filter->kind, filter->since, filter->words, filter->tags,
                                    filter->cursor ? key : NULL, filter->cursor ? id : NULL,
                                    ADV_INTEGER(filter->limit_count + 1)),
                         &rows, &database);
    adv_text_free(&sql);
    if (code == ADV_E_BAD_REQUEST) /* a day that is not in the calendar */
        return adv_err_add(err, code, filter->since ? "/query/since" : "/query/cursor",
                           filter->since ? "2026-11-21 or 2026-11-21T05:00:00Z"
                                         : "use next_cursor as it came",
                           filter->since ? "since is not a time" : "this is not a cursor of this list");
    if (code) {
        adv_err_merge(err, &database, "");
        return code;
    }
    print_page(order, falls, &rows, filter->limit_count, json);
    adv_rows_free(&rows);
    return ADV_OK;
}
