#include "engine/maxtext/flags.h"
#include "engine/catalog/releases.h"

#include <stdio.h>
#include <string.h>

#define AT(member)  offsetof(struct adv_flags, member)
#define NAMED(text) text, sizeof text - 1

/* The switches of a plan and their flags. */
static const struct {
    const char *name;
    size_t name_bytes;
    size_t offset;
} switches[] = {
    {NAMED("xla_tpu_enable_sparse_core_collective_offload_all_gather"), AT(sc_all_gather)},
    {NAMED("xla_tpu_enable_sparse_core_collective_offload_2d_all_gather"), AT(sc_2d_all_gather)},
    {NAMED("xla_tpu_enable_sparse_core_collective_offload_3d_all_gather"), AT(sc_3d_all_gather)},
    {NAMED("xla_tpu_enable_sparse_core_collective_offload_reduce_scatter"), AT(sc_reduce_scatter)},
    {NAMED("xla_tpu_enable_sparse_core_collective_offload_all_reduce"), AT(sc_all_reduce)},
    {NAMED("xla_enable_async_all_gather"), AT(async_all_gather)},
    {NAMED("xla_tpu_enable_async_collective_fusion_fuse_all_gather"), AT(cf_all_gather)},
    {NAMED("xla_tpu_enable_async_collective_fusion_fuse_reduce_scatter"), AT(cf_reduce_scatter)},
    {NAMED("xla_tpu_enable_async_collective_fusion_fuse_all_reduce"), AT(cf_all_reduce)},
    {NAMED("xla_tpu_enable_latency_hiding_layer_scheduler"), AT(latency_hiding_layer_scheduler)},
    {NAMED("xla_tpu_enable_sparse_core_collective_aggregator"), AT(sc_aggregator)},
    {NAMED("xla_tpu_enable_data_parallel_all_reduce_opt"), AT(data_parallel_overlap)},
    {NAMED("xla_tpu_pipeline_memory_host_transfers"), AT(host_transfer_pipelining)},
    {NAMED("xla_tpu_enable_all_experimental_scheduler_features"), AT(host_offload_scheduling)},
};
enum { SWITCHES = sizeof switches / sizeof *switches };

/* Which bundle completes which switch. A bundle is used on the chips it is published for; of two that set one
 * flag, the earlier row wins. */
static const struct {
    size_t offset;
    const char *bundle;
} bundles[] = {
    {AT(sc_all_gather), "IRONWOOD_SPARSECORE"},
    {AT(sc_all_gather), "ENABLE_SPARSECORE_OFFLOADING_FOR_ALL_GATHER"},
    {AT(sc_reduce_scatter), "ENABLE_SPARSECORE_OFFLOADING_FOR_REDUCE_SCATTER"},
    {AT(sc_all_reduce), "ENABLE_SPARSECORE_OFFLOADING_FOR_ALL_REDUCE"},
    {AT(cf_all_gather), "CF_FOR_ALL_GATHER"},
    {AT(cf_all_reduce), "CF_FOR_ALL_REDUCE"},
    {AT(data_parallel_overlap), "DATA_PARALLEL_OVERLAP"},
    {AT(latency_hiding_layer_scheduler), "IRONWOOD_LAYER_SCHEDULER"},
    {AT(host_offload_scheduling), "HOST_OFFLOAD_FLAGS"},
    {AT(host_offload_scheduling), "IRONWOOD_OFFLOAD"},
    {AT(collective_matmul_disabled), "DISABLE_COLLECTIVE_MATMUL"},
};
enum { BUNDLES = sizeof bundles / sizeof *bundles };

/* Set on every plan of the chips it is published for. */
static const char always_bundle[] = "IRONWOOD_NATIVE_BF16";

static signed char state(const struct adv_flags *flags, size_t offset)
{
    return *((const signed char *)flags + offset);
}

static bool named(const char *flag, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(flag + 2, name, length) && flag[2 + length] == '=';
}

struct writer {
    struct adv_arena *arena;
    struct adv_config *config;
    const char *chip;
    const struct adv_catalog_refusal *refusals; /* of the libtpu that the flags are for */
    int refusals_count;
    bool full;
};

static void put(struct writer *writer, const char *flag)
{
    struct adv_config *config = writer->config;
    size_t name_length = strcspn(flag, "=");
    for (int i = 0; i < config->flags_count; i++)
        if (!strncmp(config->flags[i], flag, name_length) && config->flags[i][name_length] == '=') return;
    if (config->flags_count >= ADV_LIMIT_XLA_FLAGS)
        writer->full = true;
    else
        config->flags[config->flags_count++] = flag;
}

static void put_switch(struct writer *writer, const char *name, const char *value)
{
    char text[ADV_LIMIT_XLA_FLAG];
    (void)snprintf(text, sizeof text, "--%s=%s", name, value);
    char *copy = adv_arena_copy(writer->arena, text);
    if (copy)
        put(writer, copy);
    else
        writer->full = true;
}

static bool for_chip(const struct adv_catalog_bundle *bundle, const char *chip)
{
    for (int i = 0; i < bundle->chips_count; i++)
        if (!strcmp(bundle->chips[i], chip)) return true;
    return false;
}

static const struct adv_catalog_bundle *find_bundle(const struct adv_catalog *catalog, const char *name,
                                                    const char *chip)
{
    for (int i = 0; i < adv_catalog_tables(catalog)->bundles_count; i++) {
        const struct adv_catalog_bundle *bundle = &adv_catalog_tables(catalog)->bundles[i];
        if (!strcmp(bundle->name, name)) return for_chip(bundle, chip) ? bundle : NULL;
    }
    return NULL;
}

/* A bundle's flag that is one of the plan's switches is the plan's to set, or to leave at the compiler's
 * default. */
static bool is_switch(const char *name, size_t name_bytes)
{
    for (int i = 0; i < SWITCHES; i++)
        if (switches[i].name_bytes == name_bytes && memcmp(switches[i].name, name, name_bytes) == 0)
            return true;
    return false;
}

/* Published sets were made for other releases than the one that plans are written for. */
static bool is_refused(const struct writer *writer, const char *name, size_t name_bytes)
{
    for (int i = 0; i < writer->refusals_count; i++) {
        const struct adv_catalog_refusal *refusal = &writer->refusals[i];
        if (!refusal->value && strncmp(refusal->flag, name, name_bytes) == 0 && !refusal->flag[name_bytes])
            return true;
    }
    return false;
}

static void put_bundle(struct writer *writer, const struct adv_catalog_bundle *bundle)
{
    for (int i = 0; bundle && i < bundle->flags_count; i++) {
        const char *flag = bundle->flags[i], *name = flag + 2, *equals = strchr(flag, '=');
        const bool named_one = equals && strncmp(flag, "--", 2) == 0;
        const size_t name_bytes = named_one ? (size_t)(equals - name) : 0;
        if (!named_one || (!is_switch(name, name_bytes) && !is_refused(writer, name, name_bytes)))
            put(writer, flag);
    }
}

/* The flag is false, whatever a published set says. */
static void put_off(struct writer *writer, const char *name)
{
    struct adv_config *config = writer->config;
    int kept = 0;
    for (int i = 0; i < config->flags_count; i++)
        if (!named(config->flags[i], name)) config->flags[kept++] = config->flags[i];
    config->flags_count = kept;
    put_switch(writer, name, "false");
}

/* Flags, given or on by default, that this libtpu refuses on the chip beside those of the plan are switched
 * off. */
static void put_refused_off(struct writer *writer)
{
    for (int i = 0; i < writer->refusals_count; i++) {
        const struct adv_catalog_refusal *refusal = &writer->refusals[i];
        if (refusal->value && adv_catalog_refusal_on(refusal, writer->chip) &&
            adv_catalog_refusal_met(refusal, writer->config->flags, writer->config->flags_count))
            put_off(writer, refusal->flag);
    }
}

adv_code adv_flags_write(const struct adv_plan *plan, const struct adv_cluster *cluster,
                         const struct adv_catalog *catalog, const struct adv_software *software,
                         struct adv_arena *arena, struct adv_config *config, adv_err *err)
{
    const char *chip = cluster->chip.name;
    struct writer writer = {.arena = arena, .config = config, .chip = chip};
    writer.refusals = adv_catalog_refusals(catalog, software->libtpu, &writer.refusals_count);
    config->flags_count = 0;
    if (plan->flags.scoped_vmem_limit_kib > 0) {
        char value[24];
        (void)snprintf(value, sizeof value, "%d", plan->flags.scoped_vmem_limit_kib);
        put_switch(&writer, ADV_FLAG_VMEM_LIMIT, value);
    }
    put_bundle(&writer, find_bundle(catalog, always_bundle, chip));
    for (int i = 0; i < SWITCHES; i++) {
        signed char value = state(&plan->flags, switches[i].offset);
        if (value >= 0) put_switch(&writer, switches[i].name, value ? "true" : "false");
    }
    for (int i = 0; i < BUNDLES; i++)
        if (state(&plan->flags, bundles[i].offset) == 1)
            put_bundle(&writer, find_bundle(catalog, bundles[i].bundle, chip));
    put_refused_off(&writer);
    if (writer.full)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL,
                           "more than %d XLA flags, or the request's memory is used up", ADV_LIMIT_XLA_FLAGS);
    return ADV_OK;
}

static const char *switch_json(signed char value)
{
    return value < 0 ? "null" : value ? "true" : "false";
}

static void limit_json(int kib, char text[16])
{
    if (kib > 0)
        (void)snprintf(text, 16, "%d", kib);
    else
        (void)snprintf(text, 16, "null");
}

int adv_flags_changes(const struct adv_flags *before, const struct adv_flags *after,
                      struct adv_flag_change changes[ADV_FLAG_CHANGES])
{
    int count = 0;
    if (before->scoped_vmem_limit_kib != after->scoped_vmem_limit_kib) {
        struct adv_flag_change *change = &changes[count++];
        change->name = ADV_FLAG_VMEM_LIMIT;
        limit_json(before->scoped_vmem_limit_kib, change->from);
        limit_json(after->scoped_vmem_limit_kib, change->to);
    }
    for (int i = 0; i < SWITCHES && count < ADV_FLAG_CHANGES; i++) {
        signed char from = state(before, switches[i].offset), to = state(after, switches[i].offset);
        if (from == to) continue;
        struct adv_flag_change *change = &changes[count++];
        change->name = switches[i].name;
        (void)snprintf(change->from, sizeof change->from, "%s", switch_json(from));
        (void)snprintf(change->to, sizeof change->to, "%s", switch_json(to));
    }
    return count;
}

signed char *adv_flags_switch(struct adv_flags *flags, const char *name)
{
    for (int i = 0; i < SWITCHES; i++)
        if (!strcmp(name, switches[i].name)) return (signed char *)flags + switches[i].offset;
    return NULL;
}

void adv_flags_ignored(const struct adv_catalog *catalog, const char *libtpu, const char *chip,
                       struct adv_flags *flags)
{
    for (int i = 0; i < SWITCHES; i++) {
        const struct adv_catalog_ignored *row =
            adv_catalog_flag_ignored(catalog, libtpu, chip, switches[i].name);
        if (row)
            *((signed char *)flags + switches[i].offset) =
                row->unless[0] ? ADV_FLAG_IGNORED_ALONE : ADV_FLAG_IGNORED;
    }
}

bool adv_flags_copy(const char *name, const struct adv_flags *from, struct adv_flags *flags)
{
    signed char *own = adv_flags_switch(flags, name);
    if (!strcmp(name, ADV_FLAG_VMEM_LIMIT))
        flags->scoped_vmem_limit_kib = from->scoped_vmem_limit_kib;
    else if (own)
        *own = state(from, (size_t)(own - (signed char *)flags));
    return own || !strcmp(name, ADV_FLAG_VMEM_LIMIT);
}
