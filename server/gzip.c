#include "server/gzip.h"

#include <stdlib.h>
#define ZLIB_CONST /* input is only read */
#include <zlib.h>

#define WINDOW_BITS  (15 + 16) /* the largest window, and gzip's header around the stream */
#define MEMORY_LEVEL 8

char *adv_gzip(const void *bytes, size_t bytes_count, enum adv_gzip_effort effort, size_t *coded_bytes)
{
    *coded_bytes = 0;
    if (bytes_count < ADV_GZIP_LEAST_BYTES || bytes_count > (size_t)1 << 30) return NULL;
    z_stream stream = {.next_in = bytes, .avail_in = (uInt)bytes_count};
    if (deflateInit2(&stream, effort, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    char *coded = malloc(bytes_count);
    stream.next_out = (Bytef *)coded;
    stream.avail_out = coded ? (uInt)bytes_count : 0;
    const int ended = coded ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
    *coded_bytes = (size_t)stream.total_out;
    (void)deflateEnd(&stream);
    if (ended == Z_STREAM_END) return coded;
    free(coded); /* no memory, or not shorter */
    return NULL;
}
