/* units.h: the few conversions and integer helpers everybody needs. */
#pragma once

#include <stdint.h>

#define ADV_KIB 1024.0
#define ADV_MIB (1024.0 * 1024.0)
#define ADV_GIB (1024.0 * 1024.0 * 1024.0)
#define ADV_US  1e-6
#define ADV_NS  1e-9

/* ceil(a / b) for a >= 0, b > 0. */
static inline int64_t adv_div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* a rounded up to a multiple of b, for a >= 0, b > 0. */
static inline int64_t adv_round_up(int64_t a, int64_t b)
{
    return adv_div_up(a, b) * b;
}

static inline double adv_max(double a, double b)
{
    return a > b ? a : b;
}

static inline double adv_min(double a, double b)
{
    return a < b ? a : b;
}

static inline int64_t adv_max_i(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t adv_min_i(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The greatest common divisor of two numbers that are not negative. */
static inline int64_t adv_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The divisors of `number` into `divisors`, smallest first; returns how many, `most` at the most. */
static inline int adv_divisors(int number, int most, int *divisors)
{
    int count = 0;
    for (int i = 1; i <= number && count < most; i++)
        if (number % i == 0) divisors[count++] = i;
    return count;
}
