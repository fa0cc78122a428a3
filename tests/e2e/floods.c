/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Their bytes, by hand; see the header. */

#include "floods.h"

#include <string.h>

/* Native */

static void put_pings(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_native_header(to, 8, 7, 0, 0);
    hostile_put(to, "12345678", 8);
}

static void put_cancelled_calls(struct hostile_bytes *to, uint32_t i)
{
    hostile_native_request(to, 2 * i + 1, "/lab.Lab/Echo", "", 0);
    hostile_native_header(to, 4, 5, 0, 2 * i + 1);
    hostile_put_u32(to, 1);
}

static void put_open_calls_cancelled(struct hostile_bytes *to, uint32_t i)
{
    hostile_native_header(to, 16, 1, 0, 2 * i + 1);
    hostile_put(to, "\x0f\x12\x0d/lab.Lab/Echo", 16);
    hostile_native_header(to, 4, 5, 0, 2 * i + 1);
    hostile_put_u32(to, 1);
}

static void put_skipped_frames(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_native_header(to, 0, 200, 0, 0);
}

static void put_late_windows(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        hostile_native_request(to, 1, "/lab.Lab/Echo", "", 0);
    }
    hostile_native_header(to, 4, 6, 0, 1);
    hostile_put_u32(to, 1);
}

static void put_window_overflow(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_native_header(to, 4, 6, 0, 0);
    hostile_put_u32(to, 0x7fffffff);
}

static void put_reused_stream(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_native_request(to, 5, "/lab.Lab/Echo", "", 0);
}

static void put_unopened_stream(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_native_header(to, 4, 3, 8, 77);
    hostile_put(to, "body", 4);
}

static void put_large_header(struct hostile_bytes *to, uint32_t i)
{
    static const uint8_t zeros[16385];

    (void)i;
    hostile_native_header(to, 3 + sizeof(zeros), 1, 0, 1);
    hostile_put(to, "\x81\x80\x01", 3);
    hostile_put(to, zeros, sizeof(zeros));
}

static void put_second_settings(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_native_header(to, 0, 0, 0, 0);
}

/* HTTP/2 */

static void put_http2_pings(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 8, 6, 0, 0);
    hostile_put(to, "12345678", 8);
}

static void put_http2_settings(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 0, 4, 0, 0);
}

static void put_rapid_reset(struct hostile_bytes *to, uint32_t i)
{
    hostile_http2_request(to, 2 * i + 1, "/lab.Lab/Hang");
    hostile_http2_header(to, 4, 3, 0, 2 * i + 1);
    hostile_put_u32(to, 8);
}

/* The victim is made to reset: MadeYouReset (CVE-2025-8671). */
static void put_made_you_reset(struct hostile_bytes *to, uint32_t i)
{
    hostile_http2_request(to, 2 * i + 1, "/lab.Lab/Hang");
    hostile_http2_header(to, 4, 8, 0, 2 * i + 1);
    hostile_put_u32(to, 0x7fffffff);
}

static void put_continuations(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        hostile_http2_header(to, 2, 1, 0, 1);
        hostile_put(to, "\x83\x86", 2);
    }
    hostile_http2_header(to, 0, 9, 0, 1);
}

static void put_full_continuations(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        hostile_http2_header(to, 2, 1, 0, 1);
        hostile_put(to, "\x83\x86", 2);
    }
    hostile_http2_header(to, 68, 9, 0, 1);
    hostile_put(to, "\x00\x01x\x40", 4);
    hostile_put(to, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64);
}

/* One field of 4,000 bytes enters the table, then 16,000 references of a byte each name it. */
static void put_header_bomb(struct hostile_bytes *to, uint32_t i)
{
    uint8_t references[16000];
    char value[3900];

    memset(references, 0xbe, sizeof(references));
    memset(value, 'v', sizeof(value));
    hostile_http2_header(to, (uint32_t)(2 + 3 + 3 + sizeof(value)), 1, 0, 2 * i + 1);
    hostile_put(to, "\x83\x86", 2);
    hostile_put(to, "\x40\x01x", 3);
    hostile_put(to, "\x7f\xbd\x1d", 3);
    hostile_put(to, value, sizeof(value));
    hostile_http2_header(to, sizeof(references), 9, 4, 2 * i + 1);
    hostile_put(to, references, sizeof(references));
}

static void put_hpack_garbage(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 8, 1, 4, 1);
    hostile_put(to, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
}

static void put_http2_window_overflow(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 4, 8, 0, 0);
    hostile_put_u32(to, 0x7fffffff);
}

static void put_late_data(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        hostile_http2_request(to, 1, "/lab.Lab/Hang");
        hostile_http2_header(to, 4, 3, 0, 1);
        hostile_put_u32(to, 8);
    }
    hostile_http2_header(to, 1, 0, 0, 1);
    hostile_put_u8(to, 0);
}

static void put_late_headers(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        hostile_http2_request(to, 1, "/lab.Lab/Hang");
        hostile_http2_header(to, 4, 3, 0, 1);
        hostile_put_u32(to, 8);
    }
    hostile_http2_header(to, 1, 1, 4, 1);
    hostile_put_u8(to, 0x83);
}

static void put_late_http2_windows(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        hostile_http2_request(to, 1, "/lab.Lab/Hang");
        hostile_http2_header(to, 4, 3, 0, 1);
        hostile_put_u32(to, 8);
    }
    hostile_http2_header(to, 4, 8, 0, 1);
    hostile_put_u32(to, 1);
}

static void put_unknown_frames(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 0, 99, 0, 0);
}

static void put_empty_data(struct hostile_bytes *to, uint32_t i)
{
    if (i == 0) {
        hostile_http2_request(to, 1, "/lab.Lab/Hang");
    }
    hostile_http2_header(to, 0, 0, 0, 1);
}

static void put_priorities(struct hostile_bytes *to, uint32_t i)
{
    hostile_http2_header(to, 5, 2, 0, 2 * (i % 1000) + 1);
    hostile_put(to, "\x00\x00\x00\x00\x01", 5);
}

static void put_http2_unopened(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 4, 0, 0, 77);
    hostile_put(to, "body", 4);
}

static void put_http2_huge_frame(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 0xffffff, 1, 4, 1);
}

static void put_http2_odd_window(struct hostile_bytes *to, uint32_t i)
{
    (void)i;
    hostile_http2_header(to, 4, 8, 0, 0);
    hostile_put_u32(to, 0);
}

const struct flood floods[] = {
    {"native: pings", false, put_pings, 100000, "BOW_LIMIT_PINGS_PER_SECOND"},
    {"native: calls answered, then cancelled", false, put_cancelled_calls, 100000,
     "BOW_LIMIT_CANCELS_PER_SECOND"},
    {"native: open calls cancelled", false, put_open_calls_cancelled, 100000,
     "BOW_LIMIT_CANCELS_PER_SECOND"},
    {"native: frames to be skipped", false, put_skipped_frames, 1000000,
     "BOW_LIMIT_EMPTY_FRAMES_PER_SECOND"},
    {"native: late frames", false, put_late_windows, 1000000, "BOW_LIMIT_LATE_FRAMES_PER_SECOND"},
    {"native: window overflow", false, put_window_overflow, 10, "2147483647"},
    {"native: a stream id again", false, put_reused_stream, 10, "rise"},
    {"native: a stream never opened", false, put_unopened_stream, 10, "77"},
    {"native: a header block of 16 KiB + 1", false, put_large_header, 1, "16384"},
    {"native: settings again", false, put_second_settings, 10, "SETTINGS"},
    {"HTTP/2: pings", true, put_http2_pings, 100000, "BOW_LIMIT_PINGS_PER_SECOND"},
    {"HTTP/2: settings", true, put_http2_settings, 100000, "BOW_LIMIT_SETTINGS_PER_SECOND"},
    {"HTTP/2: rapid reset", true, put_rapid_reset, 100000, "BOW_LIMIT_CANCELS_PER_SECOND"},
    {"HTTP/2: made to reset", true, put_made_you_reset, 100000, "BOW_LIMIT_CANCELS_PER_SECOND"},
    {"HTTP/2: empty CONTINUATION without end", true, put_continuations, 1000000, "HTTP/2"},
    {"HTTP/2: CONTINUATION without end", true, put_full_continuations, 1000000, "HTTP/2"},
    {"HTTP/2: header bomb", true, put_header_bomb, 1000, "max_header_bytes"},
    {"HTTP/2: HPACK garbage", true, put_hpack_garbage, 1, ""},
    {"HTTP/2: window overflow", true, put_http2_window_overflow, 10, ""},
    {"HTTP/2: late DATA", true, put_late_data, 300000, "BOW_LIMIT_LATE_FRAMES_PER_SECOND"},
    {"HTTP/2: late HEADERS", true, put_late_headers, 300000, "BOW_LIMIT_LATE_FRAMES_PER_SECOND"},
    {"HTTP/2: late WINDOW_UPDATE", true, put_late_http2_windows, 300000, NULL},
    {"HTTP/2: unknown frames", true, put_unknown_frames, 300000,
     "BOW_LIMIT_EMPTY_FRAMES_PER_SECOND"},
    {"HTTP/2: empty DATA", true, put_empty_data, 1000000, "BOW_LIMIT_EMPTY_FRAMES_PER_SECOND"},
    {"HTTP/2: PRIORITY", true, put_priorities, 1000000, "BOW_LIMIT_EMPTY_FRAMES_PER_SECOND"},
    {"HTTP/2: a stream never opened", true, put_http2_unopened, 10, ""},
    {"HTTP/2: a frame of 16 MiB", true, put_http2_huge_frame, 1, ""},
    {"HTTP/2: a window of nothing", true, put_http2_odd_window, 1, ""},
};

const size_t n_floods = sizeof(floods) / sizeof(floods[0]);
