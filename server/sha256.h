/* sha256.h: SHA-256 by OpenSSL, for tokens, migrations, idempotency keys and entity tags. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ADV_SHA256_HEX 65 /* 64 hex digits and the NUL */

/* The digest of `bytes` as lower-case hex digits. */
void adv_sha256_hex(const void *bytes, size_t length_bytes, char hex[ADV_SHA256_HEX]);

/* Compares two digests in a time that does not depend on where they differ. */
bool adv_sha256_equal(const char a[ADV_SHA256_HEX], const char b[ADV_SHA256_HEX]);
