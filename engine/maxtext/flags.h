/* flags.h: the XLA flags of a plan: its own switches, completed by the catalog's bundles for the chip.
 *
 * The switches that change the prediction are written from the plan, so that reading the flags back gives the
 * same plan; the bundles (published sets that serve one purpose) add what belongs to a switch but has no
 * model of its own.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/spec/request.h"
#include "engine/spec/software.h"

#define ADV_FLAG_VMEM_LIMIT "xla_tpu_scoped_vmem_limit_kib"

/* The tri-state of a flag with an effect on the prediction, by its name without dashes; NULL: it is none. A
 * new one is a row of flags.c. */
signed char *adv_flags_switch(struct adv_flags *flags, const char *name);

/* Marks the switches that this libtpu takes on the chip and changes nothing by. */
void adv_flags_ignored(const struct adv_catalog *catalog, const char *libtpu, const char *chip,
                       struct adv_flags *flags);

/* Flags while they are read from texts. The flags of `config` are what was read, "--name=value" each. */
struct adv_flags_reader {
    const struct adv_catalog *catalog;
    bool strict; /* unknown flags are errors */
    struct adv_arena *arena;
    struct adv_flags *flags;
    struct adv_config *config;
    adv_err *err, *warnings;
    bool is_full; /* more than ADV_LIMIT_XLA_FLAGS */
    int words;
};

/* Reads "--name=value", "name=value" and "--name" (true), split at white space. Quotes, line continuations
 * and a leading LIBTPU_INIT_ARGS= are dropped. Findings are at `pointer`. */
void adv_flags_read_text(struct adv_flags_reader *reader, const char *text, const char *pointer);

/* Fills config->flags ("--xla_…=value", each name once, a fixed order) with what this libtpu takes on the
 * chip. Strings live in the arena or the catalog. ADV_E_MEMORY: arena exhausted or more than
 * ADV_LIMIT_XLA_FLAGS flags. */
ADV_MUST_CHECK adv_code adv_flags_write(const struct adv_plan *plan, const struct adv_cluster *cluster,
                                        const struct adv_catalog *catalog,
                                        const struct adv_software *software, struct adv_arena *arena,
                                        struct adv_config *config, adv_err *err);

/* A switch by which two plans differ. */
struct adv_flag_change {
    const char *name;      /* without dashes, static */
    char from[16], to[16]; /* JSON: "true", "false", a number; "null" = the compiler's default */
};
enum { ADV_FLAG_CHANGES = 16 };

/* Takes one switch of adv_flags_changes over from another plan's. False: it is no such switch. */
bool adv_flags_copy(const char *name, const struct adv_flags *from, struct adv_flags *flags);

/* The switches that turn `before` into `after`; returns how many. */
int adv_flags_changes(const struct adv_flags *before, const struct adv_flags *after,
                      struct adv_flag_change changes[ADV_FLAG_CHANGES]);
