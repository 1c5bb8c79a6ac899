/* verification_word.h: the compiler's word on a plan, as others pass it around. */
#pragma once

#include <stdbool.h>

struct adv_verification_word {
    bool known;
    char verdict[16];                     /* "compiles", "does_not_fit", "refused" */
    double compiled_hbm_bytes_per_device; /* NAN: the compiler got not so far */
    char versions[160];                   /* "maxtext 0.2.5, …" */
};
