#include "engine/base/near.h"

#include <stdio.h>

void adv_near_consider(struct adv_near *near, int64_t value, int64_t wanted)
{
    if (value <= wanted && value > near->below) near->below = value;
    if (value >= wanted && (near->above == 0 || value < near->above)) near->above = value;
}

static void consider_divisor(struct adv_near *near, int64_t value, int64_t unit, int64_t length,
                             int64_t wanted)
{
    if (value % unit == 0 || value == length) adv_near_consider(near, value, wanted);
}

struct adv_near adv_near_divisors(int64_t length, int64_t unit, int64_t wanted)
{
    struct adv_near near = {0, 0};
    for (int64_t i = 1; i <= length / i; i++) {
        if (length % i) continue;
        consider_divisor(&near, i, unit, length, wanted);
        consider_divisor(&near, length / i, unit, length, wanted);
    }
    return near;
}

struct adv_near adv_near_multiples(int64_t unit, int64_t wanted)
{
    const int64_t below = wanted > 0 ? wanted / unit * unit : 0;
    if (below == wanted) return (struct adv_near){below, below > 0 ? below : unit};
    return (struct adv_near){below, below + unit};
}

const char *adv_near_text(struct adv_near near, char *text, size_t text_bytes)
{
    const long long below = near.below, above = near.above;
    if (below > 0 && above > 0 && below != above)
        (void)snprintf(text, text_bytes, "%lld or %lld", below, above);
    else
        (void)snprintf(text, text_bytes, "%lld", below > 0 ? below : above);
    return text;
}
