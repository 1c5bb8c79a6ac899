/* verification_word.h: the compiler's word on a plan, as others pass it around. */
#pragma once

#include <stdbool.h>

#include "engine/json/proof.h"

struct adv_verification_word {
    bool known;
    char verdict[16];                        /* "compiles", "does_not_fit", "refused" */
    double compiled_hbm_bytes_per_device;    /* NAN: the compiler got not so far */
    char versions[ADV_LIMIT_PROOF_VERSIONS]; /* "maxtext 0.2.5, …"; of who would be asked where nothing is
                                                known; "" where nobody can be */
    bool is_waited_for;                      /* nothing is known: a verification is queued or runs */
    char failure[ADV_LIMIT_DETAIL];          /* nothing is known: why the last one ended without; or "" */
};
