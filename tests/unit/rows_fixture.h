/* rows_fixture.h: test data files of the form {"source": …, "rows": [[name, number, …], …]}. */
#pragma once

#include <jansson.h>

/* The document; fails the test when it cannot be read. `make check` runs in the project's root. */
static inline json_t *read_rows(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (!root) fail_msg("%s: %s", path, error.text);
    return root;
}

static inline const char *row_text(const json_t *row, size_t column)
{
    return json_string_value(json_array_get(row, column));
}

static inline double row_number(const json_t *row, size_t column)
{
    return json_number_value(json_array_get(row, column));
}
