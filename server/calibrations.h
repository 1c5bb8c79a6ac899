/* calibrations.h: which calibration is in force for which project, in this daemon. Looked up in the database
 * every two seconds, and at once when this daemon changes it; the kept answers are forgotten then. */
#pragma once

#include <stddef.h>

#include "server/app.h"

struct adv_calibrations;

/* NULL when memory or threads are exhausted. */
struct adv_calibrations *adv_calibrations_start(struct adv_app *app);
void adv_calibrations_stop(struct adv_calibrations *calibrations); /* NULL is fine */

/* Whether a look has seen the database. True where there is no database. */
bool adv_calibrations_known(const struct adv_app *app);

/* ADV_E_STORE at /project: before that look, for a project ("": none). Numbers without its calibration would
 * look like any others. */
ADV_MUST_CHECK adv_code adv_calibrations_require(const struct adv_app *app, const char *project,
                                                 adv_err *err);

/* Returns when it has been looked, or after two seconds. */
void adv_calibrations_refresh(struct adv_app *app);

/* The catalog of a project's calibration; the plain one where none is in force, or for "". Lives as long as
 * the app. */
const struct adv_catalog *adv_calibrations_of(const struct adv_app *app, const char *project);

/* The catalog for a request. `project`: that of the token, which no request leaves; "" for that which the
 * request names, if any. */
const struct adv_catalog *adv_calibrations_catalog(const struct adv_app *app, const char *json,
                                                   size_t json_bytes, const char *project);
