/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Length-field framing: each shape of header, cut at each byte, and what is refused. */

#include "tests/support/net.h"
#include "transport/handlers/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct bow_frame_codec_options plain(void)
{
    return (struct bow_frame_codec_options){
        .max_frame_bytes = 1024, .length_bytes = 2, .strip_bytes = 2};
}

static int next(const struct bow_frame_codec_options *options, const void *bytes, size_t len,
                size_t *ret_frame_bytes)
{
    /* A copy of exactly that length, so that a sanitizer sees any byte too many. */
    uint8_t *copy = malloc(len + 1);
    uint8_t *end = copy + 1;
    if (len > 0) {
        memcpy(end, bytes, len);
    }
    int rc = bow__frame_next(options, (struct bow_slice){end, len}, ret_frame_bytes);
    free(copy);
    return rc;
}

static void assert_whole(const struct bow_frame_codec_options *options, const char *bytes,
                         size_t len)
{
    size_t frame_bytes = 0;

    for (size_t cut = 0; cut < len; cut++) {
        assert_int_equal(next(options, bytes, cut, &frame_bytes), -EAGAIN);
        assert_int_equal(frame_bytes, 0);
    }
    assert_int_equal(next(options, bytes, len, &frame_bytes), 0);
    assert_int_equal(frame_bytes, len);
}

static void test_frame_codec_l60_each_shape_is_found_and_each_cut_waits(void **state)
{
    struct bow_frame_codec_options options = {.max_frame_bytes = 64, .length_bytes = 1};
    (void)state;
    assert_whole(&options,
                 "\x03"
                 "abc",
                 4);
    options.length_bytes = 2;
    assert_whole(&options,
                 "\0\x03"
                 "abc",
                 5);
    options.little_endian = true;
    assert_whole(&options,
                 "\x03\0"
                 "abc",
                 5);
    options.length_bytes = 3;
    assert_whole(&options,
                 "\x03\0\0"
                 "abc",
                 6);
    options.little_endian = false;
    assert_whole(&options,
                 "\0\0\x03"
                 "abc",
                 6);
    options.length_bytes = 4;
    assert_whole(&options,
                 "\0\0\0\x03"
                 "abc",
                 7);
    options.little_endian = true;
    assert_whole(&options,
                 "\x03\0\0\0"
                 "abc",
                 7);
    options.little_endian = false;
    options.length_bytes = 8;
    assert_whole(&options,
                 "\0\0\0\0\0\0\0\x03"
                 "abc",
                 11);
    options.little_endian = true;
    assert_whole(&options,
                 "\x03\0\0\0\0\0\0\0"
                 "abc",
                 11);
    /* Two bytes in front, and a length that counts the header. */
    options = (struct bow_frame_codec_options){
        .max_frame_bytes = 64, .length_offset = 2, .length_bytes = 2, .adjustment = -4};
    assert_whole(&options,
                 "ty\0\x07"
                 "abc",
                 7);
    /* A length that leaves two bytes of header after it out. */
    options.adjustment = 2;
    assert_whole(&options,
                 "ty\0\x03"
                 "hhabc",
                 9);
}

static void assert_refused(const struct bow_frame_codec_options *options, const char *bytes,
                           size_t len, int error)
{
    size_t frame_bytes = 4711;

    assert_int_equal(next(options, bytes, len, &frame_bytes), error);
    assert_int_equal(frame_bytes, 4711);
}

static void test_frame_codec_l60_maximum_is_of_the_whole_frame(void **state)
{
    const struct bow_frame_codec_options options = {.max_frame_bytes = 6, .length_bytes = 2};
    (void)state;
    assert_whole(&options,
                 "\0\x04"
                 "abcd",
                 6);
    assert_refused(&options, "\0\x05", 2, -EMSGSIZE);
}

/* F30: a claim is refused by its header alone. */
static void test_frame_codec_l60_oversize_claim_is_refused_before_its_bytes_come(void **state)
{
    struct bow_frame_codec_options options = {.max_frame_bytes = 1 << 20, .length_bytes = 4};
    (void)state;
    assert_refused(&options, "\xff\xff\xff\xff", 4, -EMSGSIZE);
    options.length_bytes = 8;
    assert_refused(&options, "\x7f\xff\xff\xff\xff\xff\xff\xff", 8, -EMSGSIZE);
    assert_refused(&options, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, -EMSGSIZE);
    options.adjustment = INT64_MAX;
    assert_refused(&options, "\x7f\xff\xff\xff\xff\xff\xff\xff", 8, -EMSGSIZE);
    options.max_frame_bytes = SIZE_MAX;
    assert_refused(&options, "\x7f\xff\xff\xff\xff\xff\xff\xff", 8, -EMSGSIZE);
}

static void test_frame_codec_l60_length_below_its_header_is_refused(void **state)
{
    struct bow_frame_codec_options options = {
        .max_frame_bytes = 64, .length_bytes = 1, .adjustment = -1};
    (void)state;
    assert_refused(&options, "\0", 1, -EBADMSG);
    assert_whole(&options, "\x01", 1);
    options.strip_bytes = 3;
    assert_refused(&options,
                   "\x02"
                   "a",
                   2, -EBADMSG); /* nothing would be left to strip from */
}

static void test_frame_codec_l60_options_are_checked(void **state)
{
    struct bow_frame_codec codec;
    struct bow_frame_codec_options options = plain();
    (void)state;
    assert_int_equal(bow_frame_codec_init(&codec, &options), 0);
    for (uint32_t n = 0; n < 12; n++) {
        bool is_known = n == 1 || n == 2 || n == 3 || n == 4 || n == 8;
        options.length_bytes = n;
        assert_int_equal(bow_frame_codec_init(&codec, &options), is_known ? 0 : -EINVAL);
    }
    options = plain();
    options.length_offset = 1023;
    assert_int_equal(bow_frame_codec_init(&codec, &options), -EINVAL);
    options.length_offset = SIZE_MAX;
    assert_int_equal(bow_frame_codec_init(&codec, &options), -EINVAL);
    options = plain();
    options.strip_bytes = 1025;
    assert_int_equal(bow_frame_codec_init(&codec, &options), -EINVAL);
}

/* In a channel: a codec, and a probe behind it that notes each frame. */
struct framed {
    struct net net;
    struct bow_frame_codec codec;
    struct probe probe;
    char frames[512];
    struct bow_channel *channel;
    int peer;
};

static void note_frame(struct framed *framed, const struct bow_buf *bytes)
{
    size_t len = strlen(framed->frames);

    snprintf(framed->frames + len, sizeof(framed->frames) - len, "[%.*s]", (int)bytes->len,
             (const char *)bytes->data);
}

static size_t take_frame(struct probe *probe, const struct bow_buf *bytes)
{
    note_frame(probe->user, bytes);
    return bytes->len;
}

static void begin_with(struct framed *framed, const struct bow_frame_codec_options *options)
{
    memset(framed, 0, sizeof(*framed));
    net_begin(&framed->net);
    probe_init(&framed->probe, &framed->net);
    framed->probe.user = framed;
    framed->probe.on_read = take_frame;
    assert_int_equal(bow_frame_codec_init(&framed->codec, options), 0);
    framed->channel = net_channel(&framed->net, NET_UNIX, &framed->peer, &framed->probe, 1);
    bow_channel_add_first(framed->channel, &framed->codec.handler);
}

static void end(struct framed *framed)
{
    close(framed->peer);
    net_end(&framed->net);
}

static void put(struct framed *framed, const char *bytes, size_t len)
{
    assert_int_equal(send(framed->peer, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

#define STREAM                                                                                     \
    "\0\x03"                                                                                       \
    "abc"                                                                                          \
    "\0\0"                                                                                         \
    "\0\x01"                                                                                       \
    "d"                                                                                            \
    "\0\x02"                                                                                       \
    "ef"
#define STREAM_BYTES (sizeof(STREAM) - 1)

static void test_frame_codec_l60_frames_come_whole_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t step = 1; step <= STREAM_BYTES; step++) {
        struct framed framed;
        const struct bow_frame_codec_options options = plain();
        begin_with(&framed, &options);
        for (size_t at = 0; at < STREAM_BYTES; at += step) {
            size_t len = STREAM_BYTES - at < step ? STREAM_BYTES - at : step;
            put(&framed, &STREAM[at], len);
            net_turn(&framed.net);
        }
        net_run_until(&framed.net, strlen(framed.frames) >= 14);
        assert_string_equal(framed.frames, "[abc][][d][ef]"); /* the empty one too */
        assert_int_equal(framed.probe.n_errors, 0);
        end(&framed);
    }
}

static size_t take_and_pause(struct probe *probe, const struct bow_buf *bytes)
{
    note_frame(probe->user, bytes);
    bow_channel_pause_read(probe->handler.channel);
    return bytes->len;
}

static void test_frame_codec_l63_pause_between_frames_keeps_them_apart(void **state)
{
    static const char *const steps[] = {"[abc]", "[abc][]", "[abc][][d]", "[abc][][d][ef]"};
    struct framed framed;
    const struct bow_frame_codec_options options = plain();
    (void)state;
    begin_with(&framed, &options);
    framed.probe.on_read = take_and_pause;
    put(&framed, STREAM, STREAM_BYTES);
    for (size_t i = 0; i < 4; i++) {
        net_run_until(&framed.net, strlen(framed.frames) >= strlen(steps[i]));
        net_turn(&framed.net);
        assert_string_equal(framed.frames, steps[i]);
        bow_channel_resume_read(framed.channel);
    }
    assert_int_equal(atomic_load(&framed.net.n_recv), 1);
    end(&framed);
}

static void test_frame_codec_l63_bad_frame_behind_a_pause_is_told_after_it(void **state)
{
    struct framed framed;
    const struct bow_frame_codec_options options = plain();
    (void)state;
    begin_with(&framed, &options);
    framed.probe.on_read = take_and_pause;
    put(&framed,
        "\0\x01"
        "a"
        "\xff\xff",
        5);
    net_run_until(&framed.net, strlen(framed.frames) == 3);
    net_turn(&framed.net);
    assert_int_equal(framed.probe.n_errors, 0);
    assert_int_equal(framed.probe.n_inactive, 0);
    bow_channel_resume_read(framed.channel);
    net_run_until(&framed.net, framed.probe.n_inactive == 1);
    assert_int_equal(framed.probe.last_error, -EMSGSIZE);
    end(&framed);
}

static size_t take_and_remove_codec(struct probe *probe, const struct bow_buf *bytes)
{
    struct framed *framed = probe->user;

    if (framed->codec.handler.channel != NULL && probe->n_reads == 1) {
        bow_channel_remove(&framed->codec.handler);
    }
    note_frame(framed, bytes);
    return bytes->len;
}

static void test_frame_codec_l63_removed_between_frames_gives_the_rest_on_unframed(void **state)
{
    struct framed framed;
    const struct bow_frame_codec_options options = plain();
    (void)state;
    begin_with(&framed, &options);
    framed.probe.on_read = take_and_remove_codec;
    put(&framed,
        "\0\x01"
        "a"
        "rest of it",
        13);
    net_run_until(&framed.net, strlen(framed.frames) > 3);
    assert_string_equal(framed.frames, "[a][rest of it]");
    end(&framed);
}

static void test_frame_codec_l60_oversize_frame_is_told_and_closes(void **state)
{
    struct framed framed;
    const struct bow_frame_codec_options options = plain();
    (void)state;
    begin_with(&framed, &options);
    size_t before = bow_context_bytes(framed.net.t.context);
    put(&framed,
        "\0\x01"
        "a"
        "\xff\xff"
        "zzzz",
        9);
    net_run_until(&framed.net, framed.probe.n_errors == 1);
    assert_true(bow_context_bytes(framed.net.t.context) <= before + (300 << 10));
    net_run_until(&framed.net, framed.probe.n_removed == 1);
    assert_string_equal(framed.frames, "[a]");
    assert_int_equal(framed.probe.last_error, -EMSGSIZE);
    assert_int_equal(framed.probe.inactive_error, -EMSGSIZE);
    end(&framed);
}

static void test_frame_codec_l60_end_within_a_frame_is_an_error(void **state)
{
    struct framed framed;
    const struct bow_frame_codec_options options = plain();
    (void)state;
    begin_with(&framed, &options);
    put(&framed,
        "\0\x01"
        "a"
        "\0\x05"
        "bc",
        7);
    shutdown(framed.peer, SHUT_WR);
    net_run_until(&framed.net, framed.probe.n_eofs == 1);
    assert_int_equal(framed.probe.n_errors, 1);
    assert_int_equal(framed.probe.last_error, -EBADMSG);
    assert_non_null(strstr(framed.probe.log, " error eof"));
    end(&framed);

    begin_with(&framed, &options);
    put(&framed,
        "\0\x01"
        "a",
        3);
    shutdown(framed.peer, SHUT_WR);
    net_run_until(&framed.net, framed.probe.n_eofs == 1);
    assert_int_equal(framed.probe.n_errors, 0);
    end(&framed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_codec_l60_each_shape_is_found_and_each_cut_waits),
        cmocka_unit_test(test_frame_codec_l60_maximum_is_of_the_whole_frame),
        cmocka_unit_test(test_frame_codec_l60_oversize_claim_is_refused_before_its_bytes_come),
        cmocka_unit_test(test_frame_codec_l60_length_below_its_header_is_refused),
        cmocka_unit_test(test_frame_codec_l60_options_are_checked),
        cmocka_unit_test(test_frame_codec_l60_frames_come_whole_however_they_are_cut),
        cmocka_unit_test(test_frame_codec_l60_oversize_frame_is_told_and_closes),
        cmocka_unit_test(test_frame_codec_l60_end_within_a_frame_is_an_error),
        cmocka_unit_test(test_frame_codec_l63_pause_between_frames_keeps_them_apart),
        cmocka_unit_test(test_frame_codec_l63_bad_frame_behind_a_pause_is_told_after_it),
        cmocka_unit_test(test_frame_codec_l63_removed_between_frames_gives_the_rest_on_unframed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
