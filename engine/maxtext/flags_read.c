#include "engine/maxtext/flags.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/text.h"

static const char fusion_name[] = "xla_tpu_enable_async_collective_fusion";
static const char einsum_threshold_name[] = "xla_jf_spmd_threshold_for_windowed_einsum_mib";
enum { EINSUM_NEVER_MIB = 100000 }; /* recipes switch the windowed einsum off with 1000000 */

/* Words read, of which repeated ones are one flag: each may be looked up among a thousand names. */
enum { WORDS_MAX = 4 * ADV_LIMIT_XLA_FLAGS };

static signed char truth_of(const char *value)
{
    if (strcasecmp(value, "true") == 0 || strcasecmp(value, "enabled") == 0 || strcmp(value, "1") == 0)
        return 1;
    if (strcasecmp(value, "false") == 0 || strcasecmp(value, "disabled") == 0 || strcmp(value, "0") == 0)
        return 0;
    return -1;
}

static bool number_of(const char *value, double *number)
{
    char *end = NULL;
    *number = strtod(value, &end);
    return end != value && *end == '\0' && isfinite(*number);
}

static void report_unknown(const struct adv_flags_reader *reader, const char *name, const char *pointer)
{
    enum { FLAGS_SEEN_COUNT = 1024 };
    const char *names[FLAGS_SEEN_COUNT];
    int count = adv_catalog_tables(reader->catalog)->flags_count;
    if (count > FLAGS_SEEN_COUNT) count = FLAGS_SEEN_COUNT;
    for (int i = 0; i < count; i++) names[i] = adv_catalog_tables(reader->catalog)->flags[i].name;
    const char *nearest = adv_text_nearest(name, names, count);
    char hint[ADV_LIMIT_DETAIL] = "";
    if (nearest) (void)snprintf(hint, sizeof hint, "did you mean %s?", nearest);
    adv_err *into = reader->strict ? reader->err : reader->warnings;
    (void)adv_err_add_rule(into, reader->strict ? ADV_E_INVALID : ADV_OK, "unknown-flag", pointer, hint,
                           "%.120s is not an XLA flag the catalog knows", name);
}

/* Remembers "--name=value" for the answer; a flag given again takes the place of the first. */
static void keep_flag(struct adv_flags_reader *reader, const char *name, const char *value,
                      const char *pointer)
{
    char text[ADV_LIMIT_XLA_FLAG];
    (void)snprintf(text, sizeof text, "--%s=%s", name, value);
    size_t name_length = strlen(name);
    struct adv_config *config = reader->config;
    int at = config->flags_count;
    for (int i = 0; i < config->flags_count; i++) {
        const char *kept = config->flags[i] + 2;
        if (strncmp(kept, name, name_length) != 0 || kept[name_length] != '=') continue;
        at = i;
        if (strcmp(kept + name_length + 1, value) == 0) break;
        (void)adv_err_add_rule(reader->warnings, ADV_OK, "contradictory-flags", pointer,
                               "keep one of the two", "%s is given as %s and as %s: the last one counts",
                               name, kept + name_length + 1, value);
    }
    if (at == ADV_LIMIT_XLA_FLAGS) {
        reader->is_full = true;
        return;
    }
    char *copy = adv_arena_copy(reader->arena, text);
    if (!copy) {
        (void)adv_err_add(reader->err, ADV_E_MEMORY, "", NULL, "the request is too large");
        return;
    }
    config->flags[at] = copy;
    if (at == config->flags_count) config->flags_count++;
}

static void apply_number(struct adv_flags_reader *reader, const char *name, const char *value,
                         const char *pointer)
{
    double number = 0;
    if (!number_of(value, &number) || number < 0 || number > 1e9) {
        (void)adv_err_add(reader->err, ADV_E_INVALID, pointer, "a whole number >= 0",
                          "%s does not take \"%.60s\"", name, value);
        return;
    }
    if (strcmp(name, ADV_FLAG_VMEM_LIMIT) == 0)
        reader->flags->scoped_vmem_limit_kib = (int)number;
    else
        reader->flags->collective_matmul_disabled = number >= EINSUM_NEVER_MIB;
}

static void apply_switch(struct adv_flags_reader *reader, const char *name, const char *value,
                         const char *pointer)
{
    signed char truth = truth_of(value);
    if (strcmp(name, fusion_name) == 0 && truth == 0) {
        reader->flags->cf_all_gather = reader->flags->cf_reduce_scatter = reader->flags->cf_all_reduce = 0;
    }
    signed char *own = adv_flags_switch(reader->flags, name);
    if (own && truth < 0)
        (void)adv_err_add_rule(reader->warnings, ADV_OK, "flag-value", pointer, "true or false",
                               "%s: \"%.60s\" is neither true nor false", name, value);
    if (own) *own = truth;
}

/* One "--name=value", "name=value" or bare "--name" (true). Modifies `text`. */
static void read_flag(struct adv_flags_reader *reader, char *text, const char *pointer)
{
    if (++reader->words > WORDS_MAX) reader->is_full = true;
    if (reader->is_full) return;
    char *name = text + strspn(text, "-");
    char *equals = strchr(name, '=');
    const char *value = "true";
    if (equals) {
        *equals = '\0';
        value = equals + 1;
    }
    if (!*name) return;
    if (strlen(name) + strlen(value) + 4 > ADV_LIMIT_XLA_FLAG) {
        (void)adv_err_add(reader->err, ADV_E_TOO_LARGE, pointer, NULL, "a flag is longer than %d bytes",
                          ADV_LIMIT_XLA_FLAG);
        return;
    }
    if (!adv_catalog_flag(reader->catalog, name)) report_unknown(reader, name, pointer);
    if (strcmp(name, ADV_FLAG_VMEM_LIMIT) == 0 || strcmp(name, einsum_threshold_name) == 0)
        apply_number(reader, name, value, pointer);
    else
        apply_switch(reader, name, value, pointer);
    keep_flag(reader, name, value, pointer);
}

void adv_flags_read_text(struct adv_flags_reader *reader, const char *text, const char *pointer)
{
    char *copy = adv_arena_copy(reader->arena, text);
    if (!copy) {
        (void)adv_err_add(reader->err, ADV_E_MEMORY, "", NULL, "the request is too large");
        return;
    }
    char *saved = NULL;
    for (char *word = strtok_r(copy, " \t\r\n'\"\\", &saved); word && !reader->is_full;
         word = strtok_r(NULL, " \t\r\n'\"\\", &saved)) {
        static const char variable[] = "LIBTPU_INIT_ARGS=";
        if (strncmp(word, variable, sizeof variable - 1) == 0) word += sizeof variable - 1;
        if (adv_text_has_control(word))
            (void)adv_err_add(reader->err, ADV_E_INVALID, pointer, NULL, "a flag has control characters");
        else if (*word && strcmp(word, "export") != 0)
            read_flag(reader, word, pointer);
    }
}
