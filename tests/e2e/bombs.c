/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Made with the libraries that inflate them; see the header. */

#include "bombs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define PATH "/lab.Lab/Echo"
#define ZSTD_LEVEL 19
#define GZIP_WINDOW (15 + 16) /* of deflateInit2(): the largest, with gzip's header */

static void pack_zstd(struct bomb *bomb, const uint8_t *text, size_t n)
{
    size_t most = ZSTD_compressBound(n);

    bomb->bytes = malloc(most);
    assert_non_null(bomb->bytes);
    bomb->n = ZSTD_compress(bomb->bytes, most, text, n, ZSTD_LEVEL);
    assert_false(ZSTD_isError(bomb->n));
}

static void pack_gzip(struct bomb *bomb, const uint8_t *text, size_t n)
{
    z_stream stream = {0};

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY),
                     Z_OK);
    size_t most = deflateBound(&stream, n);
    bomb->bytes = malloc(most);
    assert_non_null(bomb->bytes);
    stream.next_in = (uint8_t *)(uintptr_t)text; /* zlib's const is an option */
    stream.avail_in = (uInt)n;
    stream.next_out = bomb->bytes;
    stream.avail_out = (uInt)most;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    bomb->n = stream.total_out;
    assert_int_equal(deflateEnd(&stream), Z_OK);
}

static void put_varint(struct hostile_bytes *to, uint32_t value)
{
    for (; value > 0x7f; value >>= 7) {
        hostile_put_u8(to, (uint8_t)(value | 0x80));
    }
    hostile_put_u8(to, (uint8_t)value);
}

void bomb_make(struct bomb *bomb, bool http2, uint32_t n_numbers, bool is_decodable)
{
    static struct hostile_bytes head;

    head.n = 0;
    hostile_put_u8(&head, 0x22); /* numbers, packed */
    put_varint(&head, n_numbers);
    size_t n = head.n + n_numbers + !is_decodable;
    uint8_t *text = calloc(1, n);
    assert_non_null(text);
    memcpy(text, head.data, head.n);
    if (!is_decodable) {
        text[n - 1] = 0x0f; /* field 1, of no wire type */
    }
    bomb->http2 = http2;
    http2 ? pack_gzip(bomb, text, n) : pack_zstd(bomb, text, n);
    free(text);
}

void bomb_free(struct bomb *bomb)
{
    free(bomb->bytes);
}

static void put_native(const struct bomb *bomb, struct hostile_bytes *to, uint32_t stream)
{
    size_t n_path = strlen(PATH);
    size_t n_header = 2 + n_path + 6;

    hostile_native_header(to, (uint32_t)(1 + n_header + bomb->n), 1, 1 | 4 | 8, stream);
    hostile_put_u8(to, (uint8_t)n_header);
    hostile_put_u8(to, 0x12);
    hostile_put_u8(to, (uint8_t)n_path);
    hostile_put_text(to, PATH);
    hostile_put_text(to, "\x2a\x04zstd");
    hostile_put(to, bomb->bytes, bomb->n);
}

/* HEADERS end with the field that says gzip. */
static void put_http2(const struct bomb *bomb, struct hostile_bytes *to, uint32_t stream)
{
    static const char field[] = "\x00\x0dgrpc-encoding\x04gzip";
    size_t begin = to->n;

    hostile_http2_request(to, stream, PATH);
    hostile_put(to, field, sizeof(field) - 1);
    size_t n_block = to->n - begin - 9;
    to->data[begin + 1] = (uint8_t)(n_block >> 8);
    to->data[begin + 2] = (uint8_t)n_block;
    hostile_http2_header(to, (uint32_t)(5 + bomb->n), 0, 1, stream);
    hostile_put_u8(to, 1);
    hostile_put_u32(to, (uint32_t)bomb->n);
    hostile_put(to, bomb->bytes, bomb->n);
}

void bomb_put(const struct bomb *bomb, struct hostile_bytes *to, uint32_t stream)
{
    bomb->http2 ? put_http2(bomb, to, stream) : put_native(bomb, to, stream);
}
