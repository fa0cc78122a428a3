/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server answers to frames that RFC 9113 and RFC 7541 have a rule for, a row for each: the
 * section, the frames, and what follows. Where the RFC says otherwise, or leaves a choice, the row
 * says so.
 */

#include "tests/rpc/http2_fed_server.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_STEPS 6
#define SIZE(text) (sizeof(text) - 1)

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
    UNKNOWN = 0x77
};
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4, PADDED = 8, PRIORITIZED = 32 };

struct step {
    enum { NOTHING, FRAME, REQUEST, BLOCK, HEAD } kind;
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    const char *bytes;
    size_t len;
    const char *fields[10];
};

#define FRAME_OF(t, f, s, text)                                                                    \
    {                                                                                              \
        .kind = FRAME, .type = (t), .flags = (f), .stream = (s), .bytes = (text),                  \
        .len = SIZE(text)                                                                          \
    }
/* A whole request for gRPC, that may go on. */
#define REQUEST_OF(f, s)                                                                           \
    {                                                                                              \
        .kind = REQUEST, .flags = (f), .stream = (s)                                               \
    }
/* HEADERS of these fields. */
#define BLOCK_OF(f, s, ...)                                                                        \
    {                                                                                              \
        .kind = BLOCK, .flags = (f), .stream = (s), .fields = { __VA_ARGS__ }                      \
    }
/* Only what says that so many bytes follow. */
#define HEAD_OF(t, f, s, n)                                                                        \
    {                                                                                              \
        .kind = HEAD, .type = (t), .flags = (f), .stream = (s), .len = (n)                         \
    }

struct rule {
    const char *section;
    const char *what;
    struct step steps[N_STEPS];
    const char *follows; /* "goes on", "connection CODE", "stream CODE", "stream STATUS" */
};

#define METHOD ":method: POST"
#define SCHEME ":scheme: http", ":authority: t"
#define PATH ":path: /a.B/C"
#define TYPE "content-type: application/grpc"
#define OPEN REQUEST_OF(END_HEADERS, 1)
#define HALF_CLOSED REQUEST_OF(END_HEADERS | END_STREAM, 1)

static const struct rule rules[] = {
    /* Frames */
    {"4.1",
     "a frame of an unknown type is ignored",
     {FRAME_OF(UNKNOWN, 0, 0, "12345678")},
     "goes on"},
    {"4.1",
     "flags that are not defined are ignored",
     {FRAME_OF(PING, 0x16, 0, "12345678")},
     "goes on"},
    {"4.1",
     "the reserved bit of a stream's number is ignored",
     {FRAME_OF(PING, 0, 0x80000000u, "12345678")},
     "goes on"},
    {"4.2", "DATA of a message of no bytes", {OPEN, FRAME_OF(DATA, 0, 1, "\0\0\0\0\0")}, "goes on"},
    {"4.2",
     "DATA larger than SETTINGS_MAX_FRAME_SIZE",
     {OPEN, HEAD_OF(DATA, 0, 1, BOW_LIMIT_FRAME_BYTES + 1)},
     "connection FRAME_SIZE_ERROR"},
    {"4.2",
     "HEADERS larger than SETTINGS_MAX_FRAME_SIZE",
     {HEAD_OF(HEADERS, END_HEADERS, 1, BOW_LIMIT_FRAME_BYTES + 1)},
     "connection FRAME_SIZE_ERROR"},
    {"4.3",
     "a block of headers that does not decode",
     {FRAME_OF(HEADERS, END_HEADERS, 1, "\xFF\xFF\xFF\x7F")},
     "connection COMPRESSION_ERROR"},
    {"4.3",
     "PRIORITY within a block of headers",
     {FRAME_OF(HEADERS, 0, 1, "\x83"), FRAME_OF(PRIORITY, 0, 1, "\0\0\0\0\20")},
     "connection PROTOCOL_ERROR"},
    {"4.3",
     "HEADERS of another stream within a block of headers",
     {FRAME_OF(HEADERS, 0, 1, "\x83"), FRAME_OF(HEADERS, END_HEADERS, 3, "\x83")},
     "connection PROTOCOL_ERROR"},
    /* States of streams */
    {"5.1", "DATA on an idle stream", {FRAME_OF(DATA, 0, 1, "x")}, "connection PROTOCOL_ERROR"},
    {"5.1",
     "RST_STREAM on an idle stream",
     {FRAME_OF(RST_STREAM, 0, 1, "\0\0\0\x8")},
     "connection PROTOCOL_ERROR"},
    {"5.1",
     "WINDOW_UPDATE on an idle stream",
     {FRAME_OF(WINDOW_UPDATE, 0, 1, "\0\0\0\1")},
     "connection PROTOCOL_ERROR"},
    {"5.1",
     "CONTINUATION on an idle stream",
     {FRAME_OF(CONTINUATION, END_HEADERS, 1, "\x83")},
     "connection PROTOCOL_ERROR"},
    {"5.1", "PRIORITY on an idle stream", {FRAME_OF(PRIORITY, 0, 1, "\0\0\0\0\20")}, "goes on"},
    {"5.1",
     "DATA after END_STREAM",
     {HALF_CLOSED, FRAME_OF(DATA, 0, 1, "x")},
     "connection STREAM_CLOSED"},
    {"5.1",
     "HEADERS after END_STREAM",
     {HALF_CLOSED, BLOCK_OF(END_HEADERS | END_STREAM, 1, "a: b")},
     "connection STREAM_CLOSED"},
    {"5.1",
     "CONTINUATION after END_STREAM",
     {HALF_CLOSED, FRAME_OF(CONTINUATION, END_HEADERS, 1, "\x83")},
     "connection PROTOCOL_ERROR"},
    {"5.1",
     "WINDOW_UPDATE after END_STREAM",
     {HALF_CLOSED, FRAME_OF(WINDOW_UPDATE, 0, 1, "\0\0\0\1")},
     "goes on"},
    {"5.1",
     "PRIORITY after END_STREAM",
     {HALF_CLOSED, FRAME_OF(PRIORITY, 0, 1, "\0\0\0\0\20")},
     "goes on"},
    {"5.1",
     "RST_STREAM after END_STREAM",
     {HALF_CLOSED, FRAME_OF(RST_STREAM, 0, 1, "\0\0\0\x8")},
     "goes on"},
    /* What comes on a closed stream may be ignored. */
    {"5.1",
     "DATA after RST_STREAM",
     {OPEN, FRAME_OF(RST_STREAM, 0, 1, "\0\0\0\x8"), FRAME_OF(DATA, 0, 1, "x")},
     "goes on"},
    {"5.1",
     "HEADERS after RST_STREAM",
     {OPEN, FRAME_OF(RST_STREAM, 0, 1, "\0\0\0\x8"), REQUEST_OF(END_HEADERS, 1)},
     "goes on"},
    {"5.1",
     "CONTINUATION after RST_STREAM",
     {OPEN, FRAME_OF(RST_STREAM, 0, 1, "\0\0\0\x8"),
      FRAME_OF(CONTINUATION, END_HEADERS, 1, "\x83")},
     "connection PROTOCOL_ERROR"},
    {"5.1",
     "RST_STREAM and WINDOW_UPDATE after RST_STREAM",
     {OPEN, FRAME_OF(RST_STREAM, 0, 1, "\0\0\0\x8"), FRAME_OF(RST_STREAM, 0, 1, "\0\0\0\x8"),
      FRAME_OF(WINDOW_UPDATE, 0, 1, "\0\0\0\1")},
     "goes on"},
    {"5.1.1",
     "a stream with an even number",
     {REQUEST_OF(END_HEADERS, 2)},
     "connection PROTOCOL_ERROR"},
    /* The RFC wants PROTOCOL_ERROR of the connection. nghttp2 cannot tell this from what comes late
     * on a stream that is closed, whose numbers it does not keep, and ignores both. */
    {"5.1.1",
     "a stream with a lower number than one before it",
     {REQUEST_OF(END_HEADERS, 5), REQUEST_OF(END_HEADERS, 3)},
     "goes on"},
    {"5.3.1 of RFC 7540",
     "HEADERS that depend on themselves",
     {FRAME_OF(HEADERS, END_HEADERS | PRIORITIZED, 1, "\0\0\0\1\20\x83")},
     "connection PROTOCOL_ERROR"},
    {"5.3.1 of RFC 7540",
     "PRIORITY that depends on itself",
     {OPEN, FRAME_OF(PRIORITY, 0, 1, "\0\0\0\1\20")},
     "connection PROTOCOL_ERROR"},
    {"5.5",
     "a frame of an unknown type within a block of headers",
     {FRAME_OF(HEADERS, 0, 1, "\x83"), FRAME_OF(UNKNOWN, 0, 0, "x")},
     "connection PROTOCOL_ERROR"},
    /* DATA */
    {"6.1", "DATA on stream 0", {FRAME_OF(DATA, 0, 0, "x")}, "connection PROTOCOL_ERROR"},
    {"6.1",
     "DATA with more padding than it has bytes",
     {OPEN, FRAME_OF(DATA, PADDED | END_STREAM, 1, "\6x")},
     "connection PROTOCOL_ERROR"},
    /* HEADERS */
    {"6.2",
     "HEADERS on stream 0",
     {FRAME_OF(HEADERS, END_HEADERS, 0, "\x83")},
     "connection PROTOCOL_ERROR"},
    {"6.2",
     "HEADERS with more padding than it has bytes",
     {FRAME_OF(HEADERS, PADDED | END_HEADERS, 1, "\6\x83")},
     "connection PROTOCOL_ERROR"},
    /* PRIORITY */
    {"6.3",
     "PRIORITY on stream 0",
     {FRAME_OF(PRIORITY, 0, 0, "\0\0\0\1\20")},
     "connection PROTOCOL_ERROR"},
    /* The RFC lets the stream's error be the connection's (5.4), and nghttp2 makes it so. */
    {"6.3",
     "PRIORITY of another length",
     {OPEN, FRAME_OF(PRIORITY, 0, 1, "\0\0\0\0")},
     "connection FRAME_SIZE_ERROR"},
    /* RST_STREAM */
    {"6.4",
     "RST_STREAM on stream 0",
     {FRAME_OF(RST_STREAM, 0, 0, "\0\0\0\x8")},
     "connection PROTOCOL_ERROR"},
    {"6.4",
     "RST_STREAM of another length",
     {OPEN, FRAME_OF(RST_STREAM, 0, 1, "\0\0\x8")},
     "connection FRAME_SIZE_ERROR"},
    /* SETTINGS */
    {"6.5",
     "SETTINGS that acknowledge, with a payload",
     {FRAME_OF(SETTINGS, ACK, 0, "\0\3\0\0\0\1")},
     "connection FRAME_SIZE_ERROR"},
    {"6.5",
     "SETTINGS on a stream",
     {FRAME_OF(SETTINGS, 0, 1, "\0\3\0\0\0\1")},
     "connection PROTOCOL_ERROR"},
    {"6.5",
     "SETTINGS of no multiple of six bytes",
     {FRAME_OF(SETTINGS, 0, 0, "\0\3\0\0\0")},
     "connection FRAME_SIZE_ERROR"},
    {"6.5.2",
     "SETTINGS_ENABLE_PUSH is neither 0 nor 1",
     {FRAME_OF(SETTINGS, 0, 0, "\0\2\0\0\0\2")},
     "connection PROTOCOL_ERROR"},
    {"6.5.2",
     "SETTINGS_INITIAL_WINDOW_SIZE is above 2^31 - 1",
     {FRAME_OF(SETTINGS, 0, 0, "\0\4\x80\0\0\0")},
     "connection FLOW_CONTROL_ERROR"},
    {"6.5.2",
     "SETTINGS_MAX_FRAME_SIZE is below 2^14",
     {FRAME_OF(SETTINGS, 0, 0, "\0\5\0\0\x3f\xff")},
     "connection PROTOCOL_ERROR"},
    {"6.5.2",
     "SETTINGS_MAX_FRAME_SIZE is above 2^24 - 1",
     {FRAME_OF(SETTINGS, 0, 0, "\0\5\1\0\0\0")},
     "connection PROTOCOL_ERROR"},
    {"6.5.2",
     "a setting that is not known is ignored",
     {FRAME_OF(SETTINGS, 0, 0, "\0\xff\0\0\0\1")},
     "goes on"},
    {"6.5.3",
     "a setting that comes twice",
     {FRAME_OF(SETTINGS, 0, 0, "\0\4\0\0\0\1\0\4\0\0\xff\xff")},
     "goes on"},
    /* PUSH_PROMISE */
    {"8.4",
     "PUSH_PROMISE by a client",
     {OPEN, FRAME_OF(PUSH_PROMISE, END_HEADERS, 1, "\0\0\0\2\x82")},
     "connection PROTOCOL_ERROR"},
    /* PING, GOAWAY */
    {"6.7", "PING that acknowledges none", {FRAME_OF(PING, ACK, 0, "12345678")}, "goes on"},
    {"6.7", "PING on a stream", {FRAME_OF(PING, 0, 1, "12345678")}, "connection PROTOCOL_ERROR"},
    {"6.7",
     "PING of another length",
     {FRAME_OF(PING, 0, 0, "123456")},
     "connection FRAME_SIZE_ERROR"},
    {"6.8",
     "GOAWAY on a stream",
     {FRAME_OF(GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0")},
     "connection PROTOCOL_ERROR"},
    /* WINDOW_UPDATE */
    {"6.9",
     "WINDOW_UPDATE by 0 of the connection",
     {FRAME_OF(WINDOW_UPDATE, 0, 0, "\0\0\0\0")},
     "connection PROTOCOL_ERROR"},
    /* As above. */
    {"6.9",
     "WINDOW_UPDATE by 0 of a stream",
     {OPEN, FRAME_OF(WINDOW_UPDATE, 0, 1, "\0\0\0\0")},
     "connection PROTOCOL_ERROR"},
    {"6.9",
     "WINDOW_UPDATE of another length",
     {FRAME_OF(WINDOW_UPDATE, 0, 0, "\0\0\1")},
     "connection FRAME_SIZE_ERROR"},
    {"6.9.1",
     "the window of the connection above 2^31 - 1",
     {FRAME_OF(WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff"),
      FRAME_OF(WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff")},
     "connection FLOW_CONTROL_ERROR"},
    {"6.9.1",
     "the window of a stream above 2^31 - 1",
     {OPEN, FRAME_OF(WINDOW_UPDATE, 0, 1, "\x7f\xff\xff\xff")},
     "stream FLOW_CONTROL_ERROR"},
    /* CONTINUATION */
    {"6.10",
     "several CONTINUATION frames of a block",
     {FRAME_OF(HEADERS, END_STREAM, 1, "\x83\x86\x41\1t"),
      FRAME_OF(CONTINUATION, 0, 1, "\x44\6/a.B/C"),
      FRAME_OF(CONTINUATION, END_HEADERS, 1, "\x5f\20application/grpc")},
     "goes on"},
    {"6.10",
     "CONTINUATION on stream 0",
     {FRAME_OF(HEADERS, 0, 1, "\x83"), FRAME_OF(CONTINUATION, END_HEADERS, 0, "\x86")},
     "connection PROTOCOL_ERROR"},
    {"6.10",
     "CONTINUATION after END_HEADERS",
     {OPEN, FRAME_OF(CONTINUATION, END_HEADERS, 1, "\x86")},
     "connection PROTOCOL_ERROR"},
    {"6.10",
     "CONTINUATION after DATA",
     {OPEN, FRAME_OF(DATA, 0, 1, ""), FRAME_OF(CONTINUATION, END_HEADERS, 1, "\x86")},
     "connection PROTOCOL_ERROR"},
    /* Messages of HTTP */
    {"8.1",
     "a second HEADERS without END_STREAM",
     {OPEN, BLOCK_OF(END_HEADERS, 1, "a: b")},
     "stream PROTOCOL_ERROR"},
    {"8.2.1",
     "a field's name in upper case",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, TYPE, "A: b")},
     "stream PROTOCOL_ERROR"},
    {"8.3",
     "a pseudo-header that is not defined",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, ":a: b", TYPE)},
     "stream PROTOCOL_ERROR"},
    {"8.3",
     "a response's pseudo-header",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, ":status: 200", TYPE)},
     "stream PROTOCOL_ERROR"},
    {"8.3",
     "a pseudo-header behind others",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, TYPE, PATH)},
     "stream PROTOCOL_ERROR"},
    {"8.3",
     "a pseudo-header in trailers",
     {OPEN, BLOCK_OF(END_HEADERS | END_STREAM, 1, METHOD)},
     "stream PROTOCOL_ERROR"},
    {"8.2.2",
     "a field that is about the connection",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, TYPE, "connection: keep-alive")},
     "stream PROTOCOL_ERROR"},
    {"8.2.2",
     "TE with another value than trailers",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, TYPE, "te: gzip")},
     "stream PROTOCOL_ERROR"},
    {"8.3.1",
     "an empty :path",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, ":path: ", TYPE)},
     "stream PROTOCOL_ERROR"},
    {"8.3.1",
     "no :method",
     {BLOCK_OF(END_HEADERS, 1, SCHEME, PATH, TYPE)},
     "stream PROTOCOL_ERROR"},
    {"8.3.1",
     "no :scheme",
     {BLOCK_OF(END_HEADERS, 1, METHOD, ":authority: t", PATH, TYPE)},
     "stream PROTOCOL_ERROR"},
    {"8.3.1",
     "no :path",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, TYPE)},
     "stream PROTOCOL_ERROR"},
    {"8.3.1",
     ":method twice",
     {BLOCK_OF(END_HEADERS, 1, METHOD, METHOD, SCHEME, PATH, TYPE)},
     "stream PROTOCOL_ERROR"},
    {"8.3.1",
     ":path twice",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, PATH, TYPE)},
     "stream PROTOCOL_ERROR"},
    {"8.1.1",
     "content-length is more than DATA",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, TYPE, "content-length: 6"),
      FRAME_OF(DATA, END_STREAM, 1, "\0\0\0\0\0")},
     "stream PROTOCOL_ERROR"},
    {"8.1.1",
     "content-length is less than DATA",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, TYPE, "content-length: 4"),
      FRAME_OF(DATA, END_STREAM, 1, "\0\0\0\0\0")},
     "stream PROTOCOL_ERROR"},
    {"8.1.1",
     "content-length is that of all DATA",
     {BLOCK_OF(END_HEADERS, 1, METHOD, SCHEME, PATH, TYPE, "content-length: 5"),
      FRAME_OF(DATA, 0, 1, "\0\0"), FRAME_OF(DATA, END_STREAM, 1, "\0\0\0")},
     "goes on"},
    /* HPACK */
    {"2.3.3 of RFC 7541",
     "an index beyond the table",
     {FRAME_OF(HEADERS, END_HEADERS, 1, "\xfe")},
     "connection COMPRESSION_ERROR"},
    {"4.2 of RFC 7541",
     "a size update at the end of a block",
     {FRAME_OF(HEADERS, END_HEADERS, 1, "\x83\x21")},
     "connection COMPRESSION_ERROR"},
    {"5.2 of RFC 7541",
     "Huffman's padding of more than seven bits",
     {FRAME_OF(HEADERS, END_HEADERS, 1, "\0\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff")},
     "connection COMPRESSION_ERROR"},
    {"5.2 of RFC 7541",
     "Huffman's padding with zeros",
     {FRAME_OF(HEADERS, END_HEADERS, 1, "\0\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90")},
     "connection COMPRESSION_ERROR"},
    {"5.2 of RFC 7541",
     "Huffman's EOS",
     {FRAME_OF(HEADERS, END_HEADERS, 1,
               "\0\x85\xf2\xb2\x4a\x84\xff\x87\x49\x51\xff\xff\xff\xfa\x7f")},
     "connection COMPRESSION_ERROR"},
    {"6.1 of RFC 7541",
     "the index 0",
     {FRAME_OF(HEADERS, END_HEADERS, 1, "\x80")},
     "connection COMPRESSION_ERROR"},
    {"6.3 of RFC 7541",
     "a size update above what was allowed",
     {FRAME_OF(HEADERS, END_HEADERS, 1, "\x3f\xe1\xff\3\x83")},
     "connection COMPRESSION_ERROR"},
};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

static void put(struct bytes *in, const struct step *step)
{
    const uint8_t head[] = {(uint8_t)(step->len >> 16),
                            (uint8_t)(step->len >> 8),
                            (uint8_t)step->len,
                            step->type,
                            step->flags,
                            0,
                            0,
                            0,
                            (uint8_t)step->stream};

    switch (step->kind) {
    case FRAME:
        bytes_frame(in, step->type, step->flags, step->stream, step->bytes, step->len);
        break;
    case REQUEST:
        bytes_request(in, step->flags, step->stream, NULL);
        break;
    case BLOCK:
        bytes_headers(in, step->flags, step->stream, step->fields);
        break;
    case HEAD:
        bytes_put(in, head, sizeof(head));
        break;
    case NOTHING:
        break;
    }
}

static const char *code_name(unsigned code)
{
    static const char *const names[] = {
        "NO_ERROR",         "PROTOCOL_ERROR",    "INTERNAL_ERROR",   "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT", "STREAM_CLOSED",     "FRAME_SIZE_ERROR", "REFUSED_STREAM",
        "CANCEL",           "COMPRESSION_ERROR",
    };

    return code < sizeof(names) / sizeof(names[0]) ? names[code] : "another code";
}

/* Of what the server said: how it ended the connection, or a stream, or that it goes on. */
static void read_answer(const struct fed_server *t, int rc, char *ret_follows, size_t n)
{
    const char *goaway = strstr(t->text, "GOAWAY 0 ");
    const char *reset = strstr(t->text, "RST_STREAM ");
    unsigned stream = 0;
    unsigned code = 0;

    if (goaway != NULL && sscanf(goaway, "GOAWAY 0 %u %u", &stream, &code) == 2) {
        snprintf(ret_follows, n, "connection %s", code_name(code));
    } else if (reset != NULL && sscanf(reset, "RST_STREAM %u %u", &stream, &code) == 2) {
        snprintf(ret_follows, n, "stream %s", code_name(code));
    } else {
        snprintf(ret_follows, n, "%s", rc == 0 ? "goes on" : "fails without a word");
    }
}

static bool is_held(const struct rule *rule)
{
    struct fed_server *t = NULL;
    char follows[64];

    fed_server_setup((void **)&t);
    t->pair.server.is_muted = true;
    bytes_preface(&t->in);
    bytes_frame(&t->in, SETTINGS, ACK, 0, NULL, 0);
    for (int i = 0; i < N_STEPS; i++) {
        put(&t->in, &rule->steps[i]);
    }
    bytes_frame(&t->in, PING, 0, 0, "in time.", 8);
    int rc = fed_server_feed(t);
    read_answer(t, rc, follows, sizeof(follows));
    bool is_answered = fed_server_says(t, "PING 0 ack");
    bool is_right = strcmp(follows, rule->follows) == 0 &&
                    is_answered == (strncmp(follows, "connection", 10) != 0);
    if (!is_right) {
        print_error("%s, %s: %s%s, not: %s. It said:\n%s", rule->section, rule->what, follows,
                    is_answered ? "" : " without an answer to PING", rule->follows, t->text);
    }
    fed_server_teardown((void **)&t);
    return is_right;
}

static void test_rules_hold(void **state)
{
    int n_broken = 0;

    (void)state;
    for (size_t i = 0; i < N_RULES; i++) {
        n_broken += !is_held(&rules[i]);
    }
    assert_int_equal(n_broken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
