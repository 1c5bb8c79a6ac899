/* limits.h: how often somebody may ask: a rate with a burst, per address or token.
 *
 * Each one who asks has a theoretical arrival time (GCRA): one number. The table is of fixed size; who has
 * not asked for a while needs no row, and where all rows are taken the one that is due first gives way, so
 * that many addresses cost no memory. Addresses of IPv6 count by their /64. Thread safe.
 */
#pragma once

#include <stdint.h>

struct adv_limits;
struct sockaddr;

enum adv_limit_kind { ADV_LIMIT_REQUESTS_OF_ADDRESS, ADV_LIMIT_REQUESTS_OF_TOKEN, ADV_LIMIT_WRONG_TOKENS };

struct adv_rate {
    double per_s; /* 0 = no limit */
    int burst;    /* at once, after a rest; at least 1 */
};

struct adv_limits *adv_limits_new(void); /* NULL when memory is exhausted */
void adv_limits_free(struct adv_limits *limits);

/* Whom a limit is kept for. */
uint64_t adv_limits_of_address(const struct adv_limits *limits, const struct sockaddr *address);
uint64_t adv_limits_of_name(const struct adv_limits *limits, const char *name);

/* 0: go on, and it is counted. Otherwise microseconds until the next one is allowed; not counted. */
int64_t adv_limits_take(struct adv_limits *limits, enum adv_limit_kind kind, uint64_t who,
                        const struct adv_rate *rate, int64_t now_us);
