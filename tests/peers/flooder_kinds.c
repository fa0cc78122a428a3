/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Their bytes, by hand; see the header. */

#include "flooder_kinds.h"
#include "tests/e2e/bombs.h"

#include <string.h>

#define ECHO "/lab.Lab/Echo"
#define HANG "/lab.Lab/Hang"
#define REPLY_300K "\x18\x80\x95\x13" /* asks for 314,000 bytes */
#define REPLY_512K "\x18\x80\x80\x20"
#define N_ALWAYS 1000000u
#define N_METADATA 400u
/* 4 MiB that decode to 32. */
#define N_NUMBERS 4190000u

/* Calls */

/* A whole call of `path`. */
static void put_call(struct hostile_bytes *to, bool http2, uint32_t i, const char *path,
                     const char *message)
{
    size_t n = strlen(message);

    if (!http2) {
        hostile_native_request(to, 2 * (uint64_t)i + 1, path, message, n);
        return;
    }
    hostile_http2_request(to, 2 * i + 1, path);
    hostile_http2_header(to, (uint32_t)(5 + n), 0, 1, 2 * i + 1);
    hostile_put_u8(to, 0);
    hostile_put_u32(to, (uint32_t)n);
    hostile_put(to, message, n);
}

static void put_undecodable(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, false, i, ECHO, "\xff\xff\xff");
}

static void put_http2_undecodable(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, true, i, ECHO, "\xff\xff\xff");
}

static void put_unknown_method(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, false, i, "/no.Such/Method", "");
}

static void put_http2_unknown_method(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, true, i, "/no.Such/Method", "");
}

static void put_metadata(struct hostile_bytes *to, uint32_t i)
{
    hostile_native_header(to, 2 + 15 + 8 * N_METADATA, 1, 1 | 8, 2 * (uint64_t)i + 1);
    hostile_put_u8(to, ((15 + 8 * N_METADATA) & 0x7f) | 0x80);
    hostile_put_u8(to, (15 + 8 * N_METADATA) >> 7);
    hostile_put_text(to, "\x12\x0d" ECHO);
    for (unsigned k = 0; k < N_METADATA; k++) {
        hostile_put_text(to, "\x22\x06\x0a\x01k\x12\x01v");
    }
}

static void put_http2_metadata(struct hostile_bytes *to, uint32_t i)
{
    size_t begin = to->n;

    hostile_http2_request(to, 2 * i + 1, ECHO);
    for (unsigned k = 0; k < N_METADATA; k++) {
        hostile_put(to, "\x00\x01k\x01v", 5);
    }
    size_t n_block = to->n - begin - 9;
    to->data[begin + 1] = (uint8_t)(n_block >> 8);
    to->data[begin + 2] = (uint8_t)n_block;
    hostile_http2_header(to, 5, 0, 1, 2 * i + 1);
    hostile_put(to, "\x00\x00\x00\x00\x00", 5);
}

/* Frames of a byte */

#define N_BODY 60u

static void put_tiny_frames(struct hostile_bytes *to, uint32_t i)
{
    uint64_t stream = 2 * (uint64_t)i + 1;

    hostile_native_header(to, 16, 1, 0, stream);
    hostile_put_text(to, "\x0f\x12\x0d" ECHO);
    for (unsigned k = 0; k < N_BODY + 2; k++) {
        bool is_first = k == 0;
        uint8_t flags = is_first ? 2 | 8 : k == N_BODY + 1 ? 1 : 2;
        hostile_native_header(to, is_first ? 5 : 1, 3, flags, stream);
        if (is_first) {
            hostile_put_u32(to, N_BODY + 2);
        }
        hostile_put_u8(to, is_first ? 0x12 : k == 1 ? N_BODY : 'b');
    }
}

static void put_http2_tiny_frames(struct hostile_bytes *to, uint32_t i)
{
    uint8_t message[5 + 2 + N_BODY] = {0, 0, 0, 0, 2 + N_BODY, 0x12, N_BODY};

    hostile_http2_request(to, 2 * i + 1, ECHO);
    for (size_t k = 0; k < sizeof(message); k++) {
        hostile_http2_header(to, 1, 0, k + 1 == sizeof(message), 2 * i + 1);
        hostile_put_u8(to, message[k]);
    }
}

static void put_http2_padding(struct hostile_bytes *to, uint32_t i)
{
    static const uint8_t zeros[256];

    if (i == 0) {
        hostile_http2_request(to, 1, HANG);
    }
    hostile_http2_header(to, sizeof(zeros), 0, 8, 1);
    hostile_put_u8(to, 255);
    hostile_put(to, zeros, 255);
}

/* Credit */

static void put_windows(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_native_header(to, 4, 6, 0, 0);
    hostile_put_u32(to, 1);
}

static void put_http2_windows(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 4, 8, 0, 0);
    hostile_put_u32(to, 1);
}

static void put_open_windows(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        put_call(to, false, 0, HANG, "");
    }
    hostile_native_header(to, 4, 6, 0, 1);
    hostile_put_u32(to, 1);
}

static void put_http2_open_windows(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        put_call(to, true, 0, HANG, "");
    }
    hostile_http2_header(to, 4, 8, 0, 1);
    hostile_put_u32(to, 1);
}

/* SETTINGS with one value */
static void put_initial_window(struct hostile_bytes *to, uint32_t n_bytes)
{
    hostile_http2_header(to, 6, 4, 0, 0);
    hostile_put(to, "\x00\x04", 2);
    hostile_put_u32(to, n_bytes);
}

/* The window of all calls moves with each. */
static void put_http2_moved_windows(struct hostile_bytes *to, uint32_t i)
{
    if (i < 100) {
        put_call(to, true, i, HANG, "");
        return;
    }
    put_initial_window(to, i % 2 != 0 ? 1 : 65535);
}

static void put_http2_zero_window(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        put_initial_window(to, 0);
    }
    put_call(to, true, i, ECHO, REPLY_300K);
}

static void put_waiting(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, false, i, ECHO, REPLY_300K);
}

static void put_http2_waiting(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, true, i, ECHO, REPLY_300K);
}

static void put_unread(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, false, i, ECHO, REPLY_512K);
}

static void put_http2_unread(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, true, i, ECHO, REPLY_512K);
}

/* Frames of the connection */

static void put_acks(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_native_header(to, 8, 7, 1, 0);
    hostile_put(to, "12345678", 8);
}

static void put_http2_acks(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 8, 6, 1, 0);
    hostile_put(to, "12345678", 8);
}

static void put_http2_settings_acks(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 0, 4, 1, 0);
}

static void put_http2_goaways(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 8, 7, 0, 0);
    hostile_put(to, "\x00\x00\x00\x00\x00\x00\x00\x00", 8);
}

/* Bytes that are nothing, the same each time. */
static void put_garbage(struct hostile_bytes *to, uint32_t i)
{
    uint32_t state = 12345 + i;

    for (int k = 0; k < 1024; k++) {
        state = state * 1664525 + 1013904223;
        hostile_put_u8(to, (uint8_t)(state >> 24));
    }
}

/* Bombs: their connection waits for seconds before it ends by BOW_LIMIT_VAIN_BYTES, see bomb_test.
 */

static struct bomb bomb;

static void put_bomb(struct hostile_bytes *to, uint32_t i)
{
    bomb_put(&bomb, to, 2 * i + 1);
}

static void put_bad_bomb(struct hostile_bytes *to, uint32_t i)
{
    bomb_put(&bomb, to, 2 * i + 1);
}

void flooder_kind_prepare(const struct flooder_kind *kind)
{
    if (kind->flood.put == put_bomb || kind->flood.put == put_bad_bomb) {
        bomb_make(&bomb, kind->flood.http2, N_NUMBERS, kind->flood.put == put_bomb);
    }
}

/* Connections */

static void put_nothing(struct hostile_bytes *to, uint32_t i)
{
    (void)to;
    (void)i;
}

static void put_echo(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, false, i, ECHO, "");
}

static void put_http2_echo(struct hostile_bytes *to, uint32_t i)
{
    put_call(to, true, i, ECHO, "");
}

/* As a connection begins; of FLOODER_RAW. */
static void put_beginning(struct hostile_bytes *to, uint32_t i)
{
    hostile_native_opening(to);
    put_echo(to, i);
}

static void put_http2_beginning(struct hostile_bytes *to, uint32_t i)
{
    hostile_http2_opening(to);
    put_http2_echo(to, i);
}

const struct flooder_kind flooder_kinds[] = {
    {{"native: undecodable messages", false, put_undecodable, N_ALWAYS,
      "BOW_LIMIT_UNDECODABLE_PER_SECOND"},
     0,
     0},
    {{"native: methods that are not there", false, put_unknown_method, N_ALWAYS, NULL}, 0, 0},
    {{"native: much metadata", false, put_metadata, N_ALWAYS, NULL}, 0, 0},
    {{"native: frames of a byte", false, put_tiny_frames, N_ALWAYS, NULL}, 0, 0},
    {{"native: credit of a byte", false, put_windows, N_ALWAYS, NULL}, 0, 0},
    {{"native: a call's credit of a byte", false, put_open_windows, N_ALWAYS, NULL}, 0, 0},
    {{"native: answers to no ping", false, put_acks, N_ALWAYS, ""}, 0, 0},
    {{"native: garbage", false, put_garbage, 10, ""}, 0, 0},
    {{"native: replies that wait", false, put_waiting, N_ALWAYS, NULL}, 0, 0},
    {{"native: replies that nobody reads", false, put_unread, N_ALWAYS, NULL}, FLOODER_UNREAD, 0},
    {{"native: zstd, large", false, put_bomb, N_ALWAYS, NULL}, 0, 0},
    {{"native: zstd, undecodable", false, put_bad_bomb, N_ALWAYS, NULL}, 0, 0},
    {{"native: calls that drip", false, put_beginning, N_ALWAYS, NULL},
     FLOODER_RAW | FLOODER_DRIPPED,
     0},
    {{"HTTP/2: undecodable messages", true, put_http2_undecodable, N_ALWAYS,
      "BOW_LIMIT_UNDECODABLE_PER_SECOND"},
     0,
     0},
    {{"HTTP/2: methods that are not there", true, put_http2_unknown_method, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: much metadata", true, put_http2_metadata, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: frames of a byte", true, put_http2_tiny_frames, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: padding", true, put_http2_padding, N_ALWAYS, ""}, 0, 0},
    {{"HTTP/2: credit of a byte", true, put_http2_windows, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: a call's credit of a byte", true, put_http2_open_windows, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: windows that move", true, put_http2_moved_windows, N_ALWAYS,
      "BOW_LIMIT_SETTINGS_PER_SECOND"},
     0,
     0},
    {{"HTTP/2: windows of nothing", true, put_http2_zero_window, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: answers to no ping", true, put_http2_acks, N_ALWAYS, ""}, 0, 0},
    {{"HTTP/2: answers to no settings", true, put_http2_settings_acks, N_ALWAYS, ""}, 0, 0},
    {{"HTTP/2: goaways", true, put_http2_goaways, N_ALWAYS, "BOW_LIMIT_GOAWAYS_PER_SECOND"}, 0, 0},
    {{"HTTP/2: garbage", true, put_garbage, 10, ""}, 0, 0},
    {{"HTTP/2: replies that wait", true, put_http2_waiting, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: replies that nobody reads", true, put_http2_unread, N_ALWAYS, NULL},
     FLOODER_UNREAD,
     0},
    {{"HTTP/2: gzip, large", true, put_bomb, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: gzip, undecodable", true, put_bad_bomb, N_ALWAYS, NULL}, 0, 0},
    {{"HTTP/2: calls that drip", true, put_http2_beginning, N_ALWAYS, NULL},
     FLOODER_RAW | FLOODER_DRIPPED,
     0},
    {{"connections: come and go", false, put_nothing, 1, NULL}, FLOODER_RAW, 0},
    {{"connections: come and are reset", false, put_nothing, 1, NULL},
     FLOODER_RAW | FLOODER_HARD,
     0},
    {{"connections: one a call, native", false, put_echo, 1, NULL}, 0, 0},
    {{"connections: one a call, HTTP/2", true, put_http2_echo, 1, NULL}, 0, 0},
    {{"connections: of no protocol", false, put_garbage, 10, ""}, FLOODER_RAW, 0},
    {{"connections: half open", false, put_nothing, 1, NULL}, FLOODER_RAW, 200},
    {{"connections: slow openings, native", false, put_beginning, 1, NULL},
     FLOODER_RAW | FLOODER_DRIPPED,
     200},
    {{"connections: slow openings, HTTP/2", true, put_http2_beginning, 1, NULL},
     FLOODER_RAW | FLOODER_DRIPPED,
     200},
};

const size_t n_flooder_kinds = sizeof(flooder_kinds) / sizeof(flooder_kinds[0]);
