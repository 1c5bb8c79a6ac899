#include "engine/kernel/tile_map.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/list.h"
#include "engine/kernel/family.h"

/* Powers of two on an axis, and sizes of a tile beside the two that make the map. */
enum { LEAST = 64, MOST = 8192, REST_MAX = 3, REST_VALUES = 12 };

/* The sizes that a cell varies: each one that is neither its row nor its column, over its values. */
struct rest {
    struct adv_tile_axis axes[REST_MAX];
    int count;
};

static size_t offset_in_tile(const struct adv_kernel_member *member)
{
    return member->offset - offsetof(struct adv_kernel_request, tile);
}

static int size_of(const struct adv_kernel_member *member, const struct adv_kernel_tile *tile)
{
    int value;
    memcpy(&value, (const char *)tile + offset_in_tile(member), sizeof value);
    return value;
}

static void set_size(const struct adv_kernel_member *member, struct adv_kernel_tile *tile, int value)
{
    memcpy((char *)tile + offset_in_tile(member), &value, sizeof value);
}

/* Keeps the values rising; a value that is there already, or one too many, is left out. */
static void insert(struct adv_tile_axis *axis, int value)
{
    int at = axis->count;
    while (at > 0 && axis->values[at - 1] > value) at--;
    if (value < 1 || axis->count == ADV_TILE_MAP_VALUES || (at > 0 && axis->values[at - 1] == value)) return;
    int *place = adv_list_open(axis->values, sizeof *axis->values, &axis->count, ADV_TILE_MAP_VALUES, at);
    if (place) *place = value;
}

/* The sizes of the seeds first, so that they are never the one too many. */
static void fill_axis(struct adv_tile_axis *axis, const struct adv_kernel_request *request,
                      const struct adv_kernel_tile *seeds, int seeds_count)
{
    const struct adv_kernel_member *member = axis->member;
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    struct adv_legal_values low = {0}, high = {0};
    int64_t least = LEAST, most = MOST;
    for (int i = 0; i < seeds_count; i++) insert(axis, size_of(member, &seeds[i]));
    if (member->kind != ADV_MEMBER_TILE) { /* buffers: as many as the first seed has, or fewer */
        for (int i = (int)member->low; i < size_of(member, &seeds[0]); i++) insert(axis, i);
        return;
    }
    if (family->near && family->near(request, member->name, LEAST, &low) && low.near.above > least)
        least = low.near.above;
    if (family->near && family->near(request, member->name, MOST, &high) && high.near.below > 0)
        most = high.near.below < MOST ? high.near.below : MOST;
    for (int value = LEAST; value <= most; value *= 2)
        if (value >= least) insert(axis, value);
    insert(axis, (int)most);
}

/* The sizes of the kernel's tile: the first two are the map's, the others are tried in each cell. */
static void make_axes(const struct adv_kernel_request *request, const struct adv_kernel_tile *seeds,
                      int seeds_count, struct adv_tile_map *map, struct rest *rest)
{
    const struct adv_kernel_members *members = &adv_kernel_family_of(request->kernel)->tile;
    struct adv_tile_axis *axes[2 + REST_MAX] = {&map->rows, &map->columns, &rest->axes[0], &rest->axes[1],
                                                &rest->axes[2]};
    int count = 0;
    for (int i = 0; i < members->count && count < 2 + REST_MAX; i++) {
        const struct adv_kernel_member *member = &members->rows[i];
        if (member->kind == ADV_MEMBER_LAYOUT || !adv_kernel_member_is_written(member, request->kernel))
            continue;
        *axes[count] = (struct adv_tile_axis){.member = member};
        fill_axis(axes[count++], request, seeds, seeds_count);
    }
    rest->count = count > 2 ? count - 2 : 0;
}

/* Is `time` what a cell rather shows than what it has? What fits, then the fastest; of what does not fit, the
 * least VMEM. */
static bool is_better(const struct adv_tile_cell *cell, const struct adv_kernel_time *time)
{
    if (cell->state == ADV_TILE_ILLEGAL) return true;
    if (time->fits_vmem != (cell->state == ADV_TILE_FITS)) return time->fits_vmem;
    return time->fits_vmem ? time->time_s < cell->time.time_s : time->vmem_bytes < cell->time.vmem_bytes;
}

static adv_code try_tile(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                         const struct adv_kernel_tile *tile, struct adv_tile_map *map,
                         struct adv_tile_cell *cell, adv_err *err)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    struct adv_kernel_time time;
    adv_err broken = adv_err_empty();
    if (adv_budget_over(machine->budget)) return adv_budget_refuse(err);
    if (family->judge) family->judge(request, tile, &broken, NULL);
    if (broken.count > 0) {
        if (!cell->rule[0]) (void)snprintf(cell->rule, sizeof cell->rule, "%s", broken.findings[0].detail);
        return ADV_OK;
    }
    const adv_code bad = family->time(machine, request, tile, &time, err);
    if (bad) return bad;
    map->evaluated_count++;
    map->vmem_limit_bytes = time.vmem_limit_bytes;
    if (!is_better(cell, &time)) return ADV_OK;
    cell->state = time.fits_vmem ? ADV_TILE_FITS : ADV_TILE_OVER_VMEM;
    cell->tile = *tile;
    cell->time = time;
    return ADV_OK;
}

/* Every combination of the sizes that are left. */
static adv_code fill_cell(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                          struct adv_kernel_tile tile, const struct rest *rest, struct adv_tile_map *map,
                          struct adv_tile_cell *cell, adv_err *err)
{
    int combinations = 1;
    for (int r = 0; r < rest->count; r++) combinations *= rest->axes[r].count;
    for (int c = 0; c < combinations; c++) {
        for (int r = 0, left = c; r < rest->count; left /= rest->axes[r++].count)
            set_size(rest->axes[r].member, &tile, rest->axes[r].values[left % rest->axes[r].count]);
        const adv_code bad = try_tile(machine, request, &tile, map, cell, err);
        if (bad) return bad;
    }
    if (cell->state != ADV_TILE_ILLEGAL) cell->rule[0] = '\0';
    return ADV_OK;
}

adv_code adv_tile_map_fill(const struct adv_kernel_machine *machine, const struct adv_kernel_request *request,
                           const struct adv_kernel_tile *seeds, int seeds_count, struct adv_tile_map *map,
                           adv_err *err)
{
    struct rest rest = {0};
    memset(map, 0, sizeof *map);
    make_axes(request, seeds, seeds_count, map, &rest);
    for (int row = 0; row < map->rows.count; row++)
        for (int column = 0; column < map->columns.count; column++) {
            struct adv_kernel_tile tile = seeds[0];
            set_size(map->rows.member, &tile, map->rows.values[row]);
            set_size(map->columns.member, &tile, map->columns.values[column]);
            const adv_code bad = fill_cell(machine, request, tile, &rest, map, &map->cells[row][column], err);
            if (bad) return bad;
        }
    return ADV_OK;
}
