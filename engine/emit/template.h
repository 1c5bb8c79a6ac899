/* template.h: files that are a text of engine/emit/templates/ with words filled in.
 *
 * A word is written {{name}}; template.c lists them. A word of several lines keeps the indentation of its
 * first.
 */
#pragma once

#include "engine/emit/artifact.h"

/* Appends the template `name`. A word that template.c does not know stays as it is. */
void adv_template_write(const char *name, const struct adv_artifact_source *source, struct adv_text *text);

/* Whether XPK has a type for so small a slice. */
bool adv_template_has_xpk_type(const struct adv_artifact_source *source);
