/* space_choices.h: keys the search sets to one good value instead of varying them, unless the request pins
 * them.
 *
 * These are the switches every published recipe of a generation agrees on (collective flags, kernels): trying
 * the other value would double the space for answers nobody wants. None of them changes what is computed.
 * Those that are priced differently from job to job may be flipped once for the whole search. Keys have their
 * values and reasons in the rows of maxtext/keys.h (suits, recipe).
 */
#pragma once

#include "engine/spec/request.h"

/* Applies the rows that suit the request's chip and model to `plan`. */
void adv_choices_apply(const struct adv_advise_request *request, struct adv_plan *plan);

/* The keys of attention, on the plan's mesh: those of `base`, but jax's kernel in place of tokamax's where
 * that does not take the masks of local layers over so many context shards. */
void adv_choices_attend(const struct adv_advise_request *request, const struct adv_plan *base,
                        struct adv_plan *plan);

/* Tokens are looked up where a pipeline would build the one-hot of all shards. */
void adv_choices_embed(const struct adv_advise_request *request, const struct adv_plan *base,
                       struct adv_plan *plan);

/* Keys whose other value may be priced faster for a model, chip and sequence: embedding by one-hot matmul or
 * gather, fused or split backward attention, partial query gradients. Sets the other value of key `which`;
 * false where a pin or another key decides. Both values are priced before a search (run.c). */
enum { ADV_CHOICES_FLIPS = 3 };
bool adv_choices_flip(const struct adv_advise_request *request, int which, struct adv_plan *plan);

/* The flag that depends on the rest of the plan: host-offload scheduling. */
void adv_choices_finish(struct adv_plan *plan);
/* That flag, where the plan has its tensors in these places (adv_remat_places). */
signed char adv_choices_scheduling(const struct adv_plan *plan, uint64_t places);
bool adv_choices_are_finished(const struct adv_plan *plan);
