/* space_pipelines.h: which pipelines are worth a look: how many layers a stage runs at once, how many
 * microbatches.
 *
 * Legal are all numbers of layers that divide those of a stage, and all multiples of the stages that divide
 * the batch. Which of them may be skipped follows from the two terms of cost/schedule.c that read them,
 * bubble and hand-overs. Those that are skipped have more layers in a stage at once, and keep as much in
 * flight or more.
 */
#pragma once

#include "engine/hardware/collective.h"
#include "engine/search/space.h"

enum { ADV_PIPELINE_DEPTHS = 32 }; /* more divisors than any number of layers below 1000 has */

/* Seconds that the layers of one optimizer step take at the very least, `plan` with whatever is kept: their
 * matmuls at the highest peak of the chip. Experts that drop tokens count nothing. */
double adv_pipeline_least_work_s(const struct adv_advise_request *request, const struct adv_plan *plan);

struct adv_pipeline {
    double layers; /* of all stages */
    double stages, microbatches;
};

/* By how much a step is longer at the least when a stage runs `deeper` layers at once in place of
 * `less_deep`, with which bubble and hand-overs take that long; negative where it may be shorter. The bubble
 * grows with the layers, hand-overs become fewer; terms that lengthen a whole step (waiting between slices,
 * early compilers) lengthen it by less than half. */
double adv_pipeline_deeper_s(const struct adv_pipeline *pipeline, int less_deep, int deeper, double bubble_s,
                             double hand_overs_s);

/* Layers a stage runs at once, ascending, without those that are no faster than others for any plan of the
 * family; around grouped matmuls all of them only. `plan` has mesh, batch and microbatches, and stages that
 * divide the pipelined layers; `stage_group` are those inside a slice. Returns how many, at least 1. Thread
 * safe. */
int adv_pipeline_depths(const struct adv_advise_request *request, const struct adv_constants *constants,
                        const struct adv_group *stage_group, const struct adv_plan *plan, double least_work_s,
                        int depths[ADV_PIPELINE_DEPTHS]);

/* Sets bounded_by and deeper of a family with a pipeline that is about to join `families`: those of the same
 * mesh start at `pipeline_start`, those with its batch and microbatches at `depths_start`. */
void adv_pipeline_bound(const struct adv_family *families, int count, int pipeline_start, int depths_start,
                        struct adv_family *family);
