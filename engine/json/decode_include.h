/* decode_include.h: "include": which members an answer has beside those it always has. */
#ifndef ADV_JSON_DECODE_INCLUDE_H
#define ADV_JSON_DECODE_INCLUDE_H

#include "engine/json/json_read.h"
#include "engine/spec/request.h"

enum {
    ADV_INCLUDES_OF_PLAN =
        ADV_INCLUDE_TIMELINE | ADV_INCLUDE_ROOFLINE | ADV_INCLUDE_LINKS | ADV_INCLUDE_SCALING
};

/* Bits of enum adv_include, of those in `allowed`; a finding for each other element. 0: asks for nothing. */
unsigned adv_decode_include(const json_t *root, unsigned allowed, adv_err *err);

#endif
