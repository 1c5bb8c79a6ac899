#include "engine/search/tile_pins.h"

#include <string.h>

#include "engine/base/units.h"
#include "engine/maxtext/changes.h"
#include "engine/maxtext/names.h"
#include "engine/search/space_batch.h"

static bool has_global_layers(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].attention != ADV_ATTENTION_LINEAR &&
            !adv_layer_has_local_tiles(&model->layers[i]))
            return true;
    return false;
}

/* Rows are padded to the row tile of wi's forward pass, which the others have to cut: with others pinned it
 * is as tall as the tallest of them. */
static void pad_to_pinned_rows(struct adv_tile_pins *pins)
{
    int *rows = &pins->gmm_blocks[0][ADV_GMM_FWD].batch_seq;
    for (int i = 0, open = *rows <= 0; i < 2 * ADV_GMM_PASSES && open; i++)
        *rows = (int)adv_max_i(*rows, pins->gmm_blocks[i / ADV_GMM_PASSES][i % ADV_GMM_PASSES].batch_seq);
}

void adv_tile_pins_of(const struct adv_advise_request *request, const struct adv_plan *base,
                      struct adv_tile_pins *pins)
{
    static const char *const layouts[3] = {ADV_NAME_SA_Q_LAYOUT, ADV_NAME_SA_K_LAYOUT, ADV_NAME_SA_V_LAYOUT};
    struct adv_plan open = {0};
    memset(&open.family.blocks[1], 0xff, sizeof open.family.blocks[1]); /* local blocks follow no pin */
    *pins = (struct adv_tile_pins){
        .layout = {base->family.q_layout, base->family.k_layout, base->family.v_layout}};
    for (int i = 0; i < 3; i++) {
        pins->has_layout[i] = adv_request_pins(request, layouts[i]);
        pins->any = pins->any || pins->has_layout[i];
    }
    if (request->tiles_pinned) {
        for (int i = 0; i < request->pins_count; i++)
            if (strstr(request->pins[i].key, "sa_block_") || strstr(request->pins[i].key, "_tile_"))
                (void)adv_key_copy(request->pins[i].key, base, &open);
        pins->any = true;
    }
    pins->one_set = request->has_one_tile_set;
    memcpy(pins->blocks, open.family.blocks, sizeof pins->blocks);
    memcpy(pins->gmm_blocks, open.family.gmm_blocks, sizeof pins->gmm_blocks);
    if (!has_global_layers(&request->model) && !adv_tile_pins_blocks(&pins->blocks[1]))
        pins->blocks[1] = pins->blocks[0];
    pad_to_pinned_rows(pins);
}

static void set(int pin, int *value)
{
    if (pin > 0) *value = pin;
}

static void pair(int pinned_block, int pinned_part, int *block, int *part)
{
    if (*part <= 0 || *block % *part == 0) return;
    if (pinned_part <= 0)
        *part = *block;
    else if (pinned_block <= 0)
        *block = *part;
}

void adv_tile_pins_set_blocks(const struct adv_splash_blocks *pins, struct adv_splash_blocks *blocks)
{
    set(pins->block_q, &blocks->block_q);
    set(pins->block_kv, &blocks->block_kv);
    set(pins->block_kv_compute, &blocks->block_kv_compute);
    set(pins->block_q_dkv, &blocks->block_q_dkv);
    set(pins->block_kv_dkv, &blocks->block_kv_dkv);
    set(pins->block_kv_dkv_compute, &blocks->block_kv_dkv_compute);
    set(pins->block_q_dq, &blocks->block_q_dq);
    set(pins->block_kv_dq, &blocks->block_kv_dq);
    pair(pins->block_kv, pins->block_kv_compute, &blocks->block_kv, &blocks->block_kv_compute);
    pair(pins->block_kv_dkv, pins->block_kv_dkv_compute, &blocks->block_kv_dkv,
         &blocks->block_kv_dkv_compute);
}

void adv_tile_pins_set_gmm(const struct adv_gmm_blocks *pins, struct adv_gmm_blocks *blocks)
{
    set(pins->batch_seq, &blocks->batch_seq);
    set(pins->embed_dim, &blocks->embed_dim);
    set(pins->mlp_dim, &blocks->mlp_dim);
}

bool adv_tile_pins_blocks(const struct adv_splash_blocks *pins)
{
    return pins->block_q > 0 || pins->block_kv > 0 || pins->block_kv_compute > 0 || pins->block_q_dkv > 0 ||
           pins->block_kv_dkv > 0 || pins->block_kv_dkv_compute > 0 || pins->block_q_dq > 0 ||
           pins->block_kv_dq > 0;
}

bool adv_tile_pins_gmm(const struct adv_gmm_blocks *pins)
{
    return pins->batch_seq > 0 || pins->embed_dim > 0 || pins->mlp_dim > 0;
}
