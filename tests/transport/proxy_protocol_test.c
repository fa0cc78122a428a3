/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who is behind a proxy: from where a header is believed, and what becomes of bad ones. */

#include "tests/support/bench.h"

#include <bowline/proxy_protocol.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE "PROXY TCP4 198.51.100.7 203.0.113.1 56324 443\r\n"
#define CLIENT "198.51.100.7:56324"

struct proxied {
    struct bench bench;
    struct bow_proxy_options options;
    struct bow_proxy_policy *policy;
    struct bow_proxy_protocol proxy;
    const char *peer_when_active;
};

static void note_peer(struct probe *probe, const char *event)
{
    struct proxied *b = probe->user;

    if (strcmp(event, "active") == 0) {
        b->peer_when_active = bow_channel_peer(probe->handler.channel);
    }
}

static void prepare(struct proxied *b)
{
    memset(b, 0, sizeof(*b));
    bench_prepare(&b->bench);
    b->options = (struct bow_proxy_options)BOW_PROXY_OPTIONS_INIT;
    b->options.networks = "10.0.0.0/8, unix";
    b->bench.probe.on_event = note_peer;
    b->bench.probe.user = b;
}

static void open_from(struct proxied *b, const char *peer)
{
    struct bow_transport_error error;

    if (bow_proxy_policy_new(b->bench.t.context, &b->options, &b->policy, &error) < 0) {
        fail_msg("%s", error.text);
    }
    bow_proxy_protocol_init(&b->proxy, b->policy);
    b->bench.handlers[0] = &b->proxy.handler;
    b->bench.options.peer = peer;
    bench_open(&b->bench);
}

static void begin(struct proxied *b, const char *peer)
{
    prepare(b);
    open_from(b, peer);
}

static void end(struct proxied *b)
{
    b->policy = bow_proxy_policy_unref(b->policy); /* a channel still refers to it */
    bench_end(&b->bench);
}

static struct bow_proxy_stats stats_of(const struct proxied *b)
{
    struct bow_proxy_stats stats = {.size = sizeof(stats)};

    assert_int_equal(bow_proxy_policy_get_stats(b->policy, &stats), 0);
    return stats;
}

static void test_proxy_protocol_l60_peer_is_the_client_before_anyone_is_active(void **state)
{
    struct proxied b;
    (void)state;
    begin(&b, "10.1.2.3:4711");
    assert_string_equal(b.bench.probe.log, " added");
    bench_feed(&b.bench, LINE "hello");
    assert_string_equal(b.peer_when_active, CLIENT);
    assert_string_equal(bow_channel_peer(b.bench.channel), CLIENT);
    assert_string_equal(b.proxy.proxy, "10.1.2.3:4711");
    bench_assert_read(&b.bench, "hello");
    assert_string_equal(b.bench.probe.log, " added active read:5 complete");
    bench_feed(&b.bench, LINE); /* the client's own, now */
    assert_int_equal(b.bench.probe.n_bytes, 5 + strlen(LINE));
    assert_int_equal(stats_of(&b).accepted, 1);
    bench_advance(&b.bench, 100 * FAKE_S);
    assert_false(bow_embedded_is_closed(b.bench.embedded));
    end(&b);
}

static void test_proxy_protocol_l60_header_may_come_byte_by_byte(void **state)
{
    struct proxied b;
    (void)state;
    begin(&b, "10.1.2.3:4711");
    for (const char *c = LINE; *c != '\0'; c++) {
        assert_string_equal(b.bench.probe.log, " added");
        bench_feed_bytes(&b.bench, c, 1);
    }
    assert_string_equal(b.bench.probe.log, " added active complete");
    assert_string_equal(bow_channel_peer(b.bench.channel), CLIENT);
    end(&b);
}

static void test_proxy_protocol_l60_v2_and_local_connections_of_the_proxy(void **state)
{
    static const char v2[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c"
                             "\xc6\x33\x64\x07\xcb\x00\x71\x01\xdc\x04\x01\xbb"
                             "bytes";
    static const char local[] = "\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"
                                "bytes";
    struct proxied b;
    (void)state;
    begin(&b, "unix:");
    bench_feed_bytes(&b.bench, v2, sizeof(v2) - 1);
    bench_assert_read(&b.bench, "bytes");
    assert_string_equal(bow_channel_peer(b.bench.channel), CLIENT);
    end(&b);
    begin(&b, "10.1.2.3:4711");
    bench_feed_bytes(&b.bench, local, sizeof(local) - 1);
    bench_assert_read(&b.bench, "bytes");
    assert_string_equal(bow_channel_peer(b.bench.channel), "10.1.2.3:4711");
    assert_null(b.proxy.proxy);
    assert_int_equal(stats_of(&b).accepted, 1);
    end(&b);
}

static void test_proxy_protocol_l60_from_elsewhere_is_not_believed(void **state)
{
    struct proxied b;
    (void)state;
    begin(&b, "192.0.2.9:1");
    assert_string_equal(b.bench.probe.log, " added active");
    bench_feed(&b.bench, LINE);
    bench_assert_read(&b.bench, LINE);
    assert_string_equal(bow_channel_peer(b.bench.channel), "192.0.2.9:1");
    assert_int_equal(b.bench.t.log_len, 0);
    end(&b);
}

static void test_proxy_protocol_l60_others_may_be_refused(void **state)
{
    struct proxied b;
    (void)state;
    prepare(&b);
    b.options.refuses_others = true;
    open_from(&b, "192.0.2.9:1");
    assert_true(bow_embedded_is_closed(b.bench.embedded));
    assert_int_equal(bow_embedded_close_error(b.bench.embedded), -EACCES);
    assert_int_equal(stats_of(&b).refused, 1);
    assert_non_null(strstr(b.bench.t.log, "PROXY header from 192.0.2.9:1 refused: it comes from "
                                          "elsewhere"));
    end(&b);
}

static void check_refused(const char *bytes, int error, const char *reason)
{
    struct proxied b;

    begin(&b, "10.1.2.3:4711");
    bench_feed(&b.bench, bytes);
    assert_true(bow_embedded_is_closed(b.bench.embedded));
    assert_int_equal(bow_embedded_close_error(b.bench.embedded), error);
    assert_int_equal(b.bench.probe.n_reads, 0);
    assert_int_equal(stats_of(&b).malformed, 1);
    assert_int_equal(stats_of(&b).accepted, 0);
    assert_non_null(strstr(b.bench.t.log, "PROXY header from 10.1.2.3:4711 refused: "));
    assert_non_null(strstr(b.bench.t.log, reason));
    end(&b);
}

static void test_proxy_protocol_l60_malformed_header_closes_and_says_why(void **state)
{
    (void)state;
    check_refused("GET / HTTP/1.1\r\n", -EBADMSG, "neither version 1 nor version 2");
    check_refused("PROXY TCP4 198.51.100.7\r\n", -EBADMSG, "not two addresses and two ports");
    check_refused("PROXY UNKNOWN xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                  -EMSGSIZE, "no end of line in 107 bytes");
}

static void test_proxy_protocol_l60_end_of_the_peer_within_a_header_is_malformed(void **state)
{
    struct proxied b;
    (void)state;
    begin(&b, "10.1.2.3:4711");
    bench_feed(&b.bench, "PROXY ");
    bow_embedded_end(b.bench.embedded);
    assert_int_equal(bow_embedded_close_error(b.bench.embedded), -EBADMSG);
    assert_int_equal(stats_of(&b).malformed, 1);
    end(&b);
    /* Without a byte it is a look whether we are there. */
    begin(&b, "10.1.2.3:4711");
    bow_embedded_end(b.bench.embedded);
    assert_true(bow_embedded_is_closed(b.bench.embedded));
    assert_int_equal(bow_embedded_close_error(b.bench.embedded), 0);
    assert_int_equal(stats_of(&b).malformed, 0);
    assert_int_equal(b.bench.t.log_len, 0);
    end(&b);
}

static void test_proxy_protocol_l60_f12_header_has_one_time_limit(void **state)
{
    struct proxied b;
    (void)state;
    prepare(&b);
    b.options.timeout_ns = 5 * FAKE_S;
    open_from(&b, "10.1.2.3:4711");
    for (int i = 0; i < 4; i++) {
        bench_advance(&b.bench, FAKE_S);
        bench_feed_bytes(&b.bench, &LINE[i], 1);
    }
    bench_advance(&b.bench, FAKE_S - 1);
    assert_false(bow_embedded_is_closed(b.bench.embedded));
    bench_advance(&b.bench, 1);
    assert_int_equal(bow_embedded_close_error(b.bench.embedded), -ETIMEDOUT);
    assert_int_equal(stats_of(&b).timed_out, 1);
    assert_non_null(strstr(b.bench.t.log, "it did not come in time"));
    end(&b);
}

static size_t count_lines(const char *log)
{
    size_t n = 0;

    for (; *log != '\0'; log++) {
        n += *log == '\n' ? 1 : 0;
    }
    return n;
}

static void test_proxy_protocol_l60_many_bad_headers_are_said_once(void **state)
{
    struct proxied b;
    (void)state;
    begin(&b, "10.1.2.3:4711");
    for (int i = 0; i < 100; i++) {
        bow_embedded_free(b.bench.embedded);
        bow_proxy_protocol_init(&b.proxy, b.policy);
        bench_open(&b.bench);
        (void)!bow_embedded_feed(b.bench.embedded, "nonsense", 8);
    }
    assert_int_equal(stats_of(&b).malformed, 100);
    assert_int_equal(count_lines(b.bench.t.log), 1);
    end(&b);
}

static void test_proxy_protocol_l60_without_memory_for_the_name_closes(void **state)
{
    struct proxied b;
    (void)state;
    begin(&b, "10.1.2.3:4711");
    bench_feed(&b.bench, "PROXY TCP4 198.51.100.7 203.0.113.1 56324 443\r");
    b.bench.t.alloc.fail_at = b.bench.t.alloc.n_calls + 2; /* the first is the test's own feed */
    assert_int_equal(bow_embedded_feed(b.bench.embedded, "\n", 1), 0);
    assert_int_equal(bow_embedded_close_error(b.bench.embedded), -ENOMEM);
    assert_string_equal(bow_channel_peer(b.bench.channel), "10.1.2.3:4711");
    end(&b);
}

static void test_proxy_protocol_l60_policy_is_checked(void **state)
{
    struct loops t;
    struct bow_proxy_options options = BOW_PROXY_OPTIONS_INIT;
    struct bow_proxy_policy *policy = NULL;
    struct bow_transport_error error;
    (void)state;
    loops_begin_real(&t);
    assert_int_equal(bow_proxy_policy_new(t.context, &options, &policy, &error), -EINVAL);
    assert_non_null(strstr(error.text, "no networks are given"));
    options.networks = "10.0.0.1/8";
    assert_int_equal(bow_proxy_policy_new(t.context, &options, &policy, &error), -EINVAL);
    assert_non_null(strstr(error.text, "bits are set beyond the prefix"));
    assert_int_equal(bow_proxy_policy_new(t.context, &options, &policy, NULL), -EINVAL);
    assert_int_equal(bow_proxy_policy_new(t.context, NULL, &policy, NULL), -EINVAL);
    options.networks = "10.0.0.0/8";
    for (size_t i = 1; i <= 2; i++) {
        t.alloc.fail_at = t.alloc.n_calls + i;
        assert_int_equal(bow_proxy_policy_new(t.context, &options, &policy, &error), -ENOMEM);
    }
    t.alloc.fail_at = 0;
    assert_null(policy);
    assert_int_equal(bow_proxy_policy_new(t.context, &options, &policy, &error), 0);
    struct bow_proxy_stats stats = {.size = sizeof(stats) + 1};
    assert_int_equal(bow_proxy_policy_get_stats(policy, &stats), -EINVAL);
    assert_ptr_equal(bow_proxy_policy_ref(policy), policy);
    bow_proxy_policy_unref(policy);
    bow_proxy_policy_unref(policy);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxy_protocol_l60_peer_is_the_client_before_anyone_is_active),
        cmocka_unit_test(test_proxy_protocol_l60_header_may_come_byte_by_byte),
        cmocka_unit_test(test_proxy_protocol_l60_v2_and_local_connections_of_the_proxy),
        cmocka_unit_test(test_proxy_protocol_l60_from_elsewhere_is_not_believed),
        cmocka_unit_test(test_proxy_protocol_l60_others_may_be_refused),
        cmocka_unit_test(test_proxy_protocol_l60_malformed_header_closes_and_says_why),
        cmocka_unit_test(test_proxy_protocol_l60_end_of_the_peer_within_a_header_is_malformed),
        cmocka_unit_test(test_proxy_protocol_l60_f12_header_has_one_time_limit),
        cmocka_unit_test(test_proxy_protocol_l60_many_bad_headers_are_said_once),
        cmocka_unit_test(test_proxy_protocol_l60_without_memory_for_the_name_closes),
        cmocka_unit_test(test_proxy_protocol_l60_policy_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
