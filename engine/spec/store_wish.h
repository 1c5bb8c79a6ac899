/* store_wish.h: whether an answer is to be stored, and under which names. */
#pragma once

#include <stdbool.h>

struct adv_store_wish {
    bool store;
    const char *label, *project, *git_ref; /* NULL when absent; at most ADV_LIMIT_NAME - 1 bytes */
};
