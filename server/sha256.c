#include "server/sha256.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

void adv_sha256_hex(const void *bytes, size_t length_bytes, char hex[ADV_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SHA256_DIGEST_LENGTH] = {0};
    (void)SHA256(bytes, length_bytes, digest);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[ADV_SHA256_HEX - 1] = '\0';
}

bool adv_sha256_equal(const char a[ADV_SHA256_HEX], const char b[ADV_SHA256_HEX])
{
    return CRYPTO_memcmp(a, b, ADV_SHA256_HEX) == 0;
}
