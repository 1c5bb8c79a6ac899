#include "engine/maxtext/changes.h"

#include <string.h>

#include "engine/base/text.h"

ADV_NAMES(adv_change_group_name, int, "mesh_and_batch", "remat", "loss_and_embedding", "attention_kernel",
          "expert_kernel", "formats", "optimizer", "xla_flags")

int adv_change_group_of(const char *name)
{
    const struct adv_key *key = adv_key_find(name);
    return key && key->group != ADV_GROUP_NONE ? (int)key->group : ADV_GROUP_MESH;
}

static void copy_row(const struct adv_key *key, const struct adv_plan *from, struct adv_plan *plan)
{
    memcpy((char *)plan + key->plan_at, (const char *)from + key->plan_at, key->plan_bytes);
}

void adv_change_group_apply(int group, const struct adv_plan *from, struct adv_plan *plan)
{
    for (int i = 0; i < adv_keys_count; i++)
        if ((int)adv_keys[i].group == group) copy_row(&adv_keys[i], from, plan);
    if (group == ADV_GROUP_FLAGS) plan->flags = from->flags;
}

/* Tiles of local layers that are those of the global ones stay so. */
static void copy_followers(const struct adv_key *key, const struct adv_plan *from, struct adv_plan *plan)
{
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *local = &adv_keys[i];
        char *at = (char *)plan + local->plan_at;
        if (local->of == ADV_OF_WINDOWS && local->follows_at == key->plan_at &&
            memcmp(at, (const char *)plan + key->plan_at, key->plan_bytes) == 0)
            memcpy(at, (const char *)from + key->plan_at, key->plan_bytes);
    }
}

bool adv_key_copy(const char *name, const struct adv_plan *from, struct adv_plan *plan)
{
    const struct adv_key *key = adv_key_find(name);
    if (!key || key->plan_bytes == 0) return false;
    if (key->holds == ADV_HOLDS_PLACEMENT && plan->policy != ADV_POLICY_CUSTOM)
        return true; /* under a preset it says nothing */
    copy_followers(key, from, plan);
    copy_row(key, from, plan);
    if (key->tries == ADV_TRIES_POLICIES) adv_policy_placements(plan->policy, plan->placements);
    return true;
}

/* The values that two plans give a key, as a change. False: out of memory. */
static bool set_change(const struct adv_key *key, const struct adv_plan *from, const struct adv_plan *to,
                       struct adv_arena *arena, struct adv_config_change *change)
{
    char from_text[ADV_LIMIT_NAME], to_text[ADV_LIMIT_NAME];
    bool fits = adv_key_text(key, adv_key_says(key, from), from_text, sizeof from_text) &&
                adv_key_text(key, adv_key_says(key, to), to_text, sizeof to_text);
    *change = (struct adv_config_change){key->name, fits ? adv_arena_copy(arena, from_text) : NULL,
                                         fits ? adv_arena_copy(arena, to_text) : NULL};
    return change->from_json && change->to_json;
}

static adv_code out_of_memory(adv_err *err)
{
    return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
}

adv_code adv_config_changes(const struct adv_plan *before, const struct adv_plan *after,
                            const struct adv_model *model, const struct adv_cluster *cluster,
                            struct adv_arena *arena, struct adv_config_change *changes, int capacity,
                            int *changes_count, adv_err *err)
{
    bool spoken[ADV_OFS];
    *changes_count = 0;
    adv_keys_spoken(model, cluster, after, spoken);
    for (int i = 0; i < adv_keys_count && *changes_count < capacity; i++) {
        const struct adv_key *key = &adv_keys[i];
        if (key->plan_bytes == 0 || !spoken[key->of] ||
            adv_key_says(key, before) == adv_key_says(key, after)) /* exact: copied, never computed */
            continue;
        if (!set_change(key, before, after, arena, &changes[*changes_count])) return out_of_memory(err);
        ++*changes_count;
    }
    return ADV_OK;
}

static bool among(const struct adv_config_change *changes, int count, const char *key)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(changes[i].key, key)) return true;
    return false;
}

/* Adds the keys in which `read` is not `after` yet; returns how many, or -1: out of memory. */
static int add_unsaid(const struct adv_plan *read, const struct adv_plan *before,
                      const struct adv_plan *after, const bool spoken[ADV_OFS], struct adv_arena *arena,
                      struct adv_config_change *changes, int capacity, int *changes_count, bool *exact)
{
    int added = 0;
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        if (key->plan_bytes == 0 || !spoken[key->of] || adv_key_says(key, read) == adv_key_says(key, after))
            continue;
        *exact = false;
        if (*changes_count == capacity || among(changes, *changes_count, key->name)) continue;
        if (!set_change(key, before, after, arena, &changes[*changes_count])) return -1;
        ++*changes_count;
        added++;
    }
    return added;
}

adv_code adv_config_changes_over(const struct adv_reread *reread, const struct adv_plan *before,
                                 const struct adv_plan *after, const struct adv_model *model,
                                 const struct adv_cluster *cluster, struct adv_arena *arena,
                                 struct adv_config_change *changes, int capacity, int *changes_count,
                                 bool *exact, adv_err *err)
{
    enum { ROUNDS = 4 }; /* a key set for another may wake a third */
    bool spoken[ADV_OFS];
    *exact = false;
    adv_code code =
        adv_config_changes(before, after, model, cluster, arena, changes, capacity, changes_count, err);
    if (code != ADV_OK) return code;
    adv_keys_spoken(model, cluster, after, spoken);
    for (int round = 0; round < ROUNDS; round++) {
        struct adv_plan read;
        if (!adv_reread_over(reread, changes, *changes_count, &read)) return ADV_OK;
        read.flags = after->flags; /* not read here */
        /* padding only costs the comparison of keys. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        *exact = memcmp(&read, after, sizeof read) == 0;
        if (*exact) return ADV_OK;
        *exact = true;
        int added = add_unsaid(&read, before, after, spoken, arena, changes, capacity, changes_count, exact);
        if (added < 0) return out_of_memory(err);
        if (added == 0) return ADV_OK;
    }
    *exact = false;
    return ADV_OK;
}
