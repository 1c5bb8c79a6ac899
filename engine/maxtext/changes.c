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

/* Two plans that are compared. */
struct comparison {
    const struct adv_plan *before, *after;
    bool spoken[ADV_OFS]; /* by the configuration of `after` */
    struct adv_arena *arena;
    struct adv_config_changes *changes;
};

/* Adds the keys in which `read` is not `after` yet, with the values that both plans give them; returns how
 * many, or -1: out of memory. */
static int add_unsaid(const struct comparison *c, const struct adv_plan *read)
{
    struct adv_config_changes *changes = c->changes;
    int added = 0;
    changes->exact = true;
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        char from[ADV_LIMIT_NAME], to[ADV_LIMIT_NAME];
        if (key->plan_bytes == 0 || !c->spoken[key->of] ||
            adv_key_says(key, read) == adv_key_says(key, c->after)) /* exact: copied, never computed */
            continue;
        changes->exact = false;
        bool is_said = changes->count == changes->capacity;
        for (int k = 0; k < changes->count; k++) is_said |= strcmp(changes->items[k].key, key->name) == 0;
        if (is_said) continue;
        if (!adv_key_text(key, adv_key_says(key, c->before), from, sizeof from) ||
            !adv_key_text(key, adv_key_says(key, c->after), to, sizeof to))
            return -1;
        const struct adv_config_change change = {key->name, adv_arena_copy(c->arena, from),
                                                 adv_arena_copy(c->arena, to)};
        if (!change.from_json || !change.to_json) return -1;
        changes->items[changes->count++] = change;
        added++;
    }
    return added;
}

adv_code adv_config_changes(const struct adv_reread *reread, const struct adv_plan *before,
                            const struct adv_plan *after, const struct adv_model *model,
                            const struct adv_cluster *cluster, struct adv_arena *arena,
                            struct adv_config_changes *changes, adv_err *err)
{
    enum { ROUNDS = 4 }; /* a key set for another may wake a third */
    struct comparison c = {.before = before, .after = after, .arena = arena, .changes = changes};
    changes->count = 0;
    adv_keys_spoken(model, cluster, after, c.spoken);
    int added = add_unsaid(&c, before);
    for (int round = 0; reread && added >= 0 && round < ROUNDS; round++) {
        struct adv_plan read;
        changes->exact = false;
        if (!adv_reread_over(reread, changes->items, changes->count, &read)) return ADV_OK;
        read.flags = after->flags; /* not read here */
        /* padding only costs the comparison of keys. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        changes->exact = memcmp(&read, after, sizeof read) == 0;
        if (changes->exact) return ADV_OK;
        added = add_unsaid(&c, &read);
        if (added == 0) return ADV_OK;
    }
    if (added < 0) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    changes->exact = !reread;
    return ADV_OK;
}
