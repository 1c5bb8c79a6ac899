/* Legality of the device orders made by hand (custom_mesh): MaxText's is_valid_custom_mesh and the 16 x 16
 * slice that the order is written for; and of what the axes leave to shard. */
#include "engine/spec/plan_rules.h"

/* The two degrees a device order is made for. */
static const int degrees_of[][2] = {[ADV_CUSTOM_MESH_64X4] = {64, 4}, [ADV_CUSTOM_MESH_32X8] = {32, 8}};

bool adv_rule_custom_mesh(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    bool slice_is_known = facts->cluster->dims[0] > 0; /* lint may be asked without one */
    if (plan->family.custom_mesh == ADV_CUSTOM_MESH_NONE || !slice_is_known) return false;
    const int *degrees = degrees_of[plan->family.custom_mesh];
    const int *dims = facts->cluster->dims;
    if (dims[0] != 16 || dims[1] != 16 || facts->cluster->devices_per_slice != 256)
        return adv_rule_broken(report, "/config/custom_mesh", "leave it empty on other slices",
                               "%s is an order of the 256 devices of a 16x16 slice, not of %s",
                               adv_custom_mesh_name(plan->family.custom_mesh), facts->cluster->topology);
    int long_count = 0, short_count = 0, other_count = 0;
    for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) {
        long_count += plan->family.ici[axis] == degrees[0];
        short_count += plan->family.ici[axis] == degrees[1];
        other_count += plan->family.ici[axis] != 1 && plan->family.ici[axis] != degrees[0] &&
                       plan->family.ici[axis] != degrees[1];
    }
    if (long_count == 1 && short_count == 1 && other_count == 0) return false;
    return adv_rule_broken(
        report, "/config/custom_mesh",
        adv_rule_hint(report, "one axis of %d and one of %d, the others 1", degrees[0], degrees[1]),
        "%s needs exactly two axes, of %d and %d devices", adv_custom_mesh_name(plan->family.custom_mesh),
        degrees[0], degrees[1]);
}

bool adv_rule_custom_mesh_unused(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const struct adv_plan *plan = facts->plan;
    if (plan->family.custom_mesh == ADV_CUSTOM_MESH_NONE || plan->family.allow_split_physical_axes ||
        facts->cluster->slices > 1)
        return false;
    return adv_rule_broken(report, "/config/allow_split_physical_axes", "set it to true",
                           "%s is ignored on one slice without allow_split_physical_axes",
                           adv_custom_mesh_name(plan->family.custom_mesh));
}

/* types.py:5616 of MaxText 0.2.5; earlier releases ran it */
bool adv_rule_optimizer_over_data(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    const int fsdp = facts->fsdp * facts->fsdp_transpose;
    if (!facts->plan->shard_optimizer_over_data || fsdp == 1) return false;
    return adv_rule_broken(
        report, "/config/shard_optimizer_over_data",
        "set it to false, or the fsdp axes to 1 and ici_data_parallelism to what they had",
        "MaxText shards the optimizer over data only where weights are whole, and fsdp is %d", fsdp);
}

/* types.py:1342 */
bool adv_rule_one_expert_sharding(const struct adv_rule_facts *facts, struct adv_rule_report *report)
{
    if (!facts->plan->family.shard_exp_on_fsdp || !facts->plan->family.use_2d_fsdp_sharding) return false;
    return adv_rule_broken(report, "/config/shard_exp_on_fsdp", "set one of the two to false",
                           "MaxText takes one of shard_exp_on_fsdp and use_2d_fsdp_sharding, both are true");
}
