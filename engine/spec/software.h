/* software.h: the releases that a plan is for. */
#pragma once

#define ADV_LIMIT_RELEASE 24 /* "0.12.0.1" */

struct adv_software {
    char maxtext[ADV_LIMIT_RELEASE], jax[ADV_LIMIT_RELEASE], libtpu[ADV_LIMIT_RELEASE];
};
