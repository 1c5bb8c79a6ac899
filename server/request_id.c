#include "server/request_id.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

void adv_uuid_make(char uuid[ADV_UUID_BYTES])
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    /* 12 bits below the millisecond keep ids of one thread in order (RFC 9562, 6.2, method 3). */
    unsigned fraction = (unsigned)((uint64_t)now.tv_nsec % 1000000 * 4096 / 1000000);
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = ms * UINT64_C(0x9e3779b97f4a7c15);
    (void)snprintf(uuid, ADV_UUID_BYTES, "%08x-%04x-7%03x-%04x-%012llx", (unsigned)(ms >> 16),
                   (unsigned)(ms & 0xffff), fraction, (unsigned)(0x8000 | (random >> 50)),
                   (unsigned long long)(random & UINT64_C(0xffffffffffff)));
}

bool adv_uuid_valid(const char *text)
{
    for (int i = 0; i < ADV_UUID_BYTES - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i])) return false;
    }
    return text[ADV_UUID_BYTES - 1] == '\0';
}

void adv_request_id_choose(const char *client, char id[ADV_LIMIT_REQUEST_ID])
{
    static const char allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._:/+=@-";
    size_t length = client ? strlen(client) : 0;
    if (length > 0 && length < ADV_LIMIT_REQUEST_ID && strspn(client, allowed) == length)
        memcpy(id, client, length + 1);
    else
        adv_uuid_make(id);
}
