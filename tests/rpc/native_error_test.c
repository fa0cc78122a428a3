/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a peer may do wrong, byte by byte, and the reason it gets: in the session's
 * failure, and in the GOAWAY that is ready to drain.
 */
#include "tests/rpc/native_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PREFACE "b04f5701 "
#define SETTINGS "00000000 00 00 000000000000 "
#define OPENING PREFACE SETTINGS
/* Stream 1, path "/s/m", END; 12 bytes of header and 7 of body. */
#define REQUEST_1 "00000007 01 01 000000000001 06 12042f732f6d "

struct wrong {
    const char *hex;
    const char *text;
    enum bow_code code;
};

/* Fed whole and byte by byte: the reason is the same. */
static void assert_wrong(const struct wrong *wrong, bool to_server, bool with_call, size_t step)
{
    struct pair pair;

    pair_init(&pair);
    pair.step = step;
    assert_int_equal(pair_open(&pair), 0);
    struct side *side = to_server ? &pair.server : &pair.client;
    if (with_call) {
        assert_true(side_call(side, "/s/m", 0, "", 0) == 1);
    }
    side_feed_hex(side, wrong->hex);
    assert_int_equal(side->rc, -EPROTO);
    side_assert_broken(side, wrong->code == BOW_OK ? BOW_INTERNAL : wrong->code, wrong->text);
    pair_fini(&pair);
}

static void assert_all_wrong(const struct wrong *wrong, size_t n, bool to_server, bool with_call)
{
    for (size_t i = 0; i < n; i++) {
        assert_wrong(&wrong[i], to_server, with_call, 0);
        assert_wrong(&wrong[i], to_server, with_call, 1);
    }
}

static void test_native_error_in_preface_is_named(void **state)
{
    static const struct wrong wrong[] = {
        {"b04f5702", "preface: the peer speaks version 2, we speak up to version 1",
         BOW_UNIMPLEMENTED},
    };

    (void)state;
    assert_all_wrong(wrong, 1, true, false);
    assert_all_wrong(wrong, 1, false, false);
}

static void test_native_error_of_another_protocol_quotes_it(void **state)
{
    struct wrong http = {"485454502f312e3120343030206e6f0d0a",
                         "preface: expected \\xb0OW\\x01, the peer began with "
                         "\"HTTP/1.1 400 no\\x0d...\": is it the right port?",
                         BOW_OK};
    struct wrong grpc = {
        "000018040000000000",
        "preface: expected \\xb0OW\\x01, the peer began with "
        "\"\\x00\\x00\\x18\\x04\\x00\\x00\\x00\\x00\\x00\": it speaks HTTP/2; for a "
        "gRPC server put \"grpc:\" in front of the target",
        BOW_OK};
    struct wrong tls = {"15030300020246",
                        "preface: expected \\xb0OW\\x01, the peer began with "
                        "\"\\x15\\x03\\x03\\x00\\x02\\x02F\": it speaks TLS; give the client "
                        "security (options.security, bow_tls_security())",
                        BOW_OK};

    (void)state;
    assert_wrong(&http, false, false, 0);
    assert_wrong(&grpc, false, false, 0);
    assert_wrong(&tls, false, false, 0);
    http.text = "preface: expected \\xb0OW\\x01, the peer began with \"H\"";
    assert_wrong(&http, false, false, 1);
}

static void test_native_error_in_frame_header_is_named(void **state)
{
    static const struct wrong wrong[] = {
        {OPENING "00040001 01 00 000000000001",
         "REQUEST frame, stream 1: length 262145 exceeds max_frame_bytes (262144)", BOW_OK},
        {OPENING "ffffffff 80 00 000000000000",
         "frame of type 128: length 4294967295 exceeds max_frame_bytes (262144)", BOW_OK},
        {OPENING "00000000 09 00 000000000000", "frame of type 9: unknown type below 128", BOW_OK},
        {OPENING "00000000 7f 00 000000000005",
         "frame of type 127, stream 5: unknown type below 128", BOW_OK},
        {PREFACE "00000008 07 00 000000000000", "PING frame: came before SETTINGS", BOW_OK},
        {OPENING SETTINGS, "SETTINGS frame: came twice", BOW_OK},
        {OPENING "00000008 07 02 000000000000", "PING frame: unknown flags 0x02", BOW_OK},
        {OPENING "00000001 01 10 000000000001", "REQUEST frame, stream 1: unknown flags 0x10",
         BOW_OK},
        {OPENING "00000007 07 00 000000000000", "PING frame: length 7 is below 8", BOW_OK},
        {OPENING "00000009 07 00 000000000000", "PING frame: length 9 is above 8", BOW_OK},
        {OPENING "00000005 08 00 000000000000", "GOAWAY frame: length 5 is below 6", BOW_OK},
        {OPENING "00000000 01 00 000000000001", "REQUEST frame, stream 1: length 0 is below 1",
         BOW_OK},
        {OPENING "00000008 07 00 000000000001", "PING frame, stream 1: belongs on stream 0",
         BOW_OK},
        {OPENING "00000001 01 00 000000000000", "REQUEST frame: belongs on a call's stream",
         BOW_OK},
        {OPENING "00000001 01 00 000000000002",
         "REQUEST frame, stream 2: stream ids of calls are odd", BOW_OK},
        {OPENING "00000001 04 01 000000000001", "STATUS frame, stream 1: is not sent by a client",
         BOW_OK},
        {OPENING "00000000 02 00 000000000001", "RESPONSE frame, stream 1: is not sent by a client",
         BOW_OK},
    };

    (void)state;
    assert_all_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), true, false);
}

static void test_native_error_in_settings_is_named(void **state)
{
    static const struct wrong wrong[] = {
        {PREFACE "00000002 00 00 000000000000 0805",
         "SETTINGS frame: header block: max_frame_bytes: value is below the protocol's minimum",
         BOW_OK},
        {PREFACE "00000002 00 00 000000000000 2063",
         "SETTINGS frame: header block: max_calls: value is below the protocol's minimum", BOW_OK},
        {PREFACE "00000006 00 00 000000000000 108080808008",
         "SETTINGS frame: stream_window_bytes is 2147483648, above 2^31 - 1", BOW_OK},
        {PREFACE "00000006 00 00 000000000000 188080808008",
         "SETTINGS frame: connection_window_bytes is 2147483648, above 2^31 - 1", BOW_OK},
        {PREFACE "00000001 00 00 000000000000 08",
         "SETTINGS frame: header block: max_frame_bytes: varint is cut short", BOW_OK},
        {PREFACE "00004001 00 00 000000000000", "SETTINGS frame: length 16385 is above 16384",
         BOW_OK},
    };

    (void)state;
    assert_all_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), true, false);
    assert_all_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), false, false);
}

static void test_native_error_in_request_is_named(void **state)
{
    static const struct wrong wrong[] = {
        {OPENING "00000003 01 01 000000000001 808001",
         "REQUEST frame, stream 1: header block of 16384 bytes runs past the frame (3 bytes)",
         BOW_OK},
        {OPENING "00000003 01 01 000000000001 818001",
         "REQUEST frame, stream 1: header block of 16385 bytes exceeds max_header_bytes (16384)",
         BOW_OK},
        {OPENING "00000001 01 01 000000000001 80",
         "REQUEST frame, stream 1: header block: its length is not a varint", BOW_OK},
        {OPENING "00000001 01 01 000000000001 00",
         "REQUEST frame, stream 1: header block: names no method", BOW_OK},
        {OPENING "00000005 01 01 000000000001 04 12042f73",
         "REQUEST frame, stream 1: header block: path: length runs past the end", BOW_OK},
        {OPENING "00000003 01 01 000000000001 02 1001",
         "REQUEST frame, stream 1: header block: path: wrong wire type", BOW_OK},
        {OPENING "00000002 01 01 000000000001 01 7b",
         "REQUEST frame, stream 1: header block: unknown field: groups and wire types above 5 are "
         "not allowed",
         BOW_OK},
        {OPENING "00000003 01 01 000000000001 02 0801",
         "REQUEST frame, stream 1: method number 1 is not bound", BOW_OK},
        {OPENING "00000006 01 01 000000000001 05 0802 1201 2f",
         "REQUEST frame, stream 1: method number 2 comes before 1", BOW_OK},
        {OPENING "00000006 01 01 000000000001 05 0841 1201 2f",
         "REQUEST frame, stream 1: method number 65 exceeds max_bound_methods (64)", BOW_OK},
        {OPENING "00000006 01 01 000000000001 05 0801 1201 2f "
                 "00000006 01 01 000000000003 05 0801 1201 2f",
         "REQUEST frame, stream 3: method number 1 is bound already", BOW_OK},
        {OPENING REQUEST_1 REQUEST_1,
         "REQUEST frame, stream 1: stream ids must rise, the last was 1", BOW_OK},
        {OPENING "00000008 01 01 000000000001 06 12042f732f6d aa",
         "REQUEST frame, stream 1: 1 message bytes without HAS_MESSAGE", BOW_OK},
        {OPENING "00000008 01 0a 000000000001 06 12042f732f6d aa",
         "REQUEST frame, stream 1: flag MORE: its message must be whole", BOW_OK},
        {OPENING "00000007 01 05 000000000001 06 12042f732f6d",
         "REQUEST frame, stream 1: flag COMPRESSED without HAS_MESSAGE", BOW_OK},
    };

    (void)state;
    assert_all_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), true, false);
}

/* A connection would keep 64 of them for as long as it lasts. */
static void test_native_error_of_a_long_path_with_a_number_is_named(void **state)
{
    struct pair pair;
    static uint8_t frame[12 + 2 + 2 + 3 + 1025];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    /* A header of 1030 bytes: the number, and a path of 1025. */
    hex_decode("00000408 01 01 000000000001 8608 0801 128108", frame, sizeof(frame));
    memset(frame + 19, 'p', 1025);
    side_feed_hex(&pair.server, OPENING);
    side_feed(&pair.server, frame, sizeof(frame));
    side_assert_broken(&pair.server, BOW_INTERNAL,
                       "REQUEST frame, stream 1: path of 1025 bytes is bound to a number, above "
                       "BOW_LIMIT_BOUND_PATH_BYTES (1024)");
    pair_fini(&pair);
}

static void test_native_error_in_message_is_named(void **state)
{
#define OPEN_1 OPENING "00000007 01 00 000000000001 06 12042f732f6d "
    static const struct wrong wrong[] = {
        {OPENING "00000000 03 01 000000000003",
         "MESSAGE frame, stream 3: the stream was never opened", BOW_OK},
        {OPENING REQUEST_1 "00000000 03 01 000000000001", "MESSAGE frame, stream 1: came after END",
         BOW_OK},
        {OPEN_1 "00000000 03 01 000000000001 00000000 03 01 000000000001",
         "MESSAGE frame, stream 1: came after END", BOW_OK},
        {OPEN_1 "00000001 03 09 000000000001 aa 00000001 03 08 000000000001 bb",
         "MESSAGE frame, stream 1: came after END", BOW_OK},
        {OPEN_1 "00000001 03 00 000000000001 aa",
         "MESSAGE frame, stream 1: goes on with a message that never began", BOW_OK},
        {OPEN_1 "00000000 03 02 000000000001",
         "MESSAGE frame, stream 1: goes on with a message that never began", BOW_OK},
        {OPEN_1 "00000003 03 0a 000000000001 000000",
         "MESSAGE frame, stream 1: length 3 has no room for the announced length", BOW_OK},
        {OPEN_1 "00000005 03 0b 000000000001 00000002 aa",
         "MESSAGE frame, stream 1: flags MORE and END contradict each other", BOW_OK},
        {OPEN_1 "00000005 03 0a 000000000001 00000002 aa 00000001 03 08 000000000001 bb",
         "MESSAGE frame, stream 1: begins a message inside another", BOW_OK},
        {OPEN_1 "00000005 03 0a 000000000001 00000002 aa 00000001 03 04 000000000001 bb",
         "MESSAGE frame, stream 1: flag COMPRESSED without HAS_MESSAGE", BOW_OK},
    };

    (void)state;
    assert_all_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), true, false);
}

static void test_native_error_in_control_is_named(void **state)
{
    static const struct wrong wrong[] = {
        {OPENING "00000004 06 00 000000000000 00000000", "WINDOW frame: grants 0 bytes", BOW_OK},
        {OPENING "00000004 06 00 000000000000 7ff00000",
         "WINDOW frame: 2146435072 bytes raise the credit of 1048576 above 2^31 - 1", BOW_OK},
        {OPENING REQUEST_1 "00000004 06 00 000000000001 ffffffff",
         "WINDOW frame, stream 1: 4294967295 bytes raise the credit of 65536 above 2^31 - 1",
         BOW_OK},
        {OPENING "00000007 01 00 000000000001 06 12042f732f6d "
                 "00000004 06 00 000000000001 7ffeffff 00000004 06 00 000000000001 00000001",
         "WINDOW frame, stream 1: 1 bytes raise the credit of 2147483647 above 2^31 - 1", BOW_OK},
        {OPENING "00000004 06 00 000000000001 00000001",
         "WINDOW frame, stream 1: the stream was never opened", BOW_OK},
        {OPENING "00000004 05 00 000000000003 00000001",
         "CANCEL frame, stream 3: the stream was never opened", BOW_OK},
        {OPENING "00000006 08 00 000000000000 000000000005 "
                 "00000006 08 00 000000000000 000000000007",
         "GOAWAY frame: last stream 7 is above 5 of the one before", BOW_OK},
        {OPENING "00000008 08 00 000000000000 000000000005 1205",
         "GOAWAY frame: header block: message: length runs past the end", BOW_OK},
    };

    (void)state;
    assert_all_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), true, false);
}

static void test_native_error_of_a_server_is_named(void **state)
{
    static const struct wrong wrong[] = {
        {OPENING "00000001 01 01 000000000003 00",
         "REQUEST frame, stream 3: is not sent by a server", BOW_OK},
        {OPENING "00000004 05 00 000000000001 00000001",
         "CANCEL frame, stream 1: is not sent by a server", BOW_OK},
        {OPENING "00000001 04 01 000000000003 00",
         "STATUS frame, stream 3: the stream was never opened", BOW_OK},
        {OPENING "00000001 04 00 000000000001 00", "STATUS frame, stream 1: flag END is missing",
         BOW_OK},
        {OPENING "00000003 04 01 000000000001 02 0d00",
         "STATUS frame, stream 1: header block: code: wrong wire type", BOW_OK},
        {OPENING "00000007 04 01 000000000001 06 08ffffffff1f",
         "STATUS frame, stream 1: header block: code: number exceeds 32 bits", BOW_OK},
        {OPENING "00000005 03 0a 000000000001 00000002 aa 00000001 04 01 000000000001 00",
         "STATUS frame, stream 1: ends the call inside a message", BOW_OK},
        {OPENING "00000000 02 00 000000000001 00000000 02 00 000000000001",
         "RESPONSE frame, stream 1: must be the first frame of an answer", BOW_OK},
        {OPENING "00000001 03 08 000000000001 aa 00000000 02 00 000000000001",
         "RESPONSE frame, stream 1: must be the first frame of an answer", BOW_OK},
        {OPENING "00000002 02 00 000000000001 0a05",
         "RESPONSE frame, stream 1: header block: metadata: length runs past the end", BOW_OK},
        {OPENING "00000004 02 00 000000000001 0a02 0801",
         "RESPONSE frame, stream 1: header block: metadata.key: wrong wire type", BOW_OK},
    };

    (void)state;
    assert_all_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), false, true);
}

static void test_native_error_beyond_credit_is_named(void **state)
{
    struct pair pair;
    static uint8_t frame[12 + BOW__NATIVE_STREAM_WINDOW];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPEN_1);
    hex_decode("00010000 03 0a 000000000001 00100000", frame, sizeof(frame));
    side_feed(&pair.server, frame, 12 + 65536);
    assert_int_equal(pair.server.rc, 0);
    /* While a message is put together its credit is topped up, here to half the window. */
    for (int i = 0; i < 8; i++) {
        hex_decode("00004000 03 02 000000000001", frame, sizeof(frame));
        side_feed(&pair.server, frame, 12 + 16384);
        assert_int_equal(pair.server.rc, 0);
    }
    hex_decode("00000001 03 08 000000000003", frame, sizeof(frame));
    side_feed_hex(&pair.server, "00000007 01 00 000000000003 06 12042f732f6d ");
    hex_decode("00011000 03 08 000000000003", frame, sizeof(frame));
    side_feed(&pair.server, frame, 12 + BOW__NATIVE_STREAM_WINDOW);
    assert_int_equal(pair.server.n_messages, 1);
    hex_decode("00000001 03 08 000000000003", frame, sizeof(frame));
    side_feed(&pair.server, frame, 13);
    side_assert_broken(&pair.server, BOW_INTERNAL,
                       "MESSAGE frame, stream 3: spends 64 bytes of credit, the stream has 0");
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_error_in_preface_is_named),
        cmocka_unit_test(test_native_error_of_another_protocol_quotes_it),
        cmocka_unit_test(test_native_error_in_frame_header_is_named),
        cmocka_unit_test(test_native_error_in_settings_is_named),
        cmocka_unit_test(test_native_error_in_request_is_named),
        cmocka_unit_test(test_native_error_of_a_long_path_with_a_number_is_named),
        cmocka_unit_test(test_native_error_in_message_is_named),
        cmocka_unit_test(test_native_error_in_control_is_named),
        cmocka_unit_test(test_native_error_of_a_server_is_named),
        cmocka_unit_test(test_native_error_beyond_credit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
