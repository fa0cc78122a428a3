/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which handlers to put in, by the first bytes; limits on how long that takes. */

#include "tests/support/bench.h"

#include <bowline/detect.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* "A…" is one protocol, "BB…" another; nothing else is known. */
struct chooser {
    struct bench bench;
    struct bow_detect detect;
    struct probe a;
    struct probe b;
    int n_asked;
    int n_failed;
    int failed_error;
};

static int choose(struct bow_detect *detect, struct bow_slice bytes, void *user)
{
    struct chooser *c = user;

    assert_true(bytes.len > 0);
    c->n_asked++;
    if (bytes.data[0] == 'A') {
        bow_channel_add_after(&detect->handler, &c->a.handler);
        return 0;
    }
    if (bytes.data[0] != 'B') {
        return -EPROTONOSUPPORT;
    }
    if (bytes.len < 2) {
        return -EAGAIN;
    }
    bow_channel_add_after(&detect->handler, &c->b.handler);
    return 0;
}

static void on_failed(struct bow_detect *detect, int error, void *user)
{
    struct chooser *c = user;

    assert_ptr_equal(detect, &c->detect);
    c->n_failed++;
    c->failed_error = error;
}

static void begin(struct chooser *c, bow_detect_fn decide)
{
    const struct bow_detect_options options = {
        .decide = decide,
        .on_failed = on_failed,
        .user = c,
        .max_bytes = 8,
        .timeout_ns = 10 * FAKE_S,
    };

    memset(c, 0, sizeof(*c));
    bench_prepare(&c->bench);
    probe_init(&c->a, NULL);
    probe_init(&c->b, NULL);
    assert_int_equal(bow_detect_init(&c->detect, &options), 0);
    c->bench.handlers[0] = &c->detect.handler;
    bench_open(&c->bench);
}

static void test_detect_l60_first_byte_puts_a_handler_in_and_gives_it_all(void **state)
{
    struct chooser c;
    (void)state;
    begin(&c, choose);
    /* Behind a decision that is open nobody is active yet. */
    assert_string_equal(c.bench.probe.log, " added");
    bench_feed(&c.bench, "A first");
    assert_string_equal(c.a.log, " added active read:7 complete");
    assert_string_equal(c.bench.probe.log, " added active complete");
    bench_feed(&c.bench, "more");
    assert_int_equal(c.a.n_bytes, 11);
    assert_int_equal(c.n_asked, 1);
    assert_false(bow_timer_is_armed(&c.detect.timer));
    bench_advance(&c.bench, 100 * FAKE_S);
    assert_false(bow_embedded_is_closed(c.bench.embedded));
    assert_null(c.b.handler.channel);
    bench_end(&c.bench);
}

static void test_detect_l60_asks_again_with_more_until_it_is_decided(void **state)
{
    struct chooser c;
    (void)state;
    begin(&c, choose);
    bench_feed(&c.bench, "B");
    assert_string_equal(c.bench.probe.log, " added");
    bench_feed(&c.bench, "B and");
    assert_int_equal(c.n_asked, 2);
    assert_string_equal(c.b.log, " added active read:6 complete");
    bench_end(&c.bench);
}

static void assert_failed(struct chooser *c, int error)
{
    assert_true(bow_embedded_is_closed(c->bench.embedded));
    assert_int_equal(c->n_failed, 1);
    assert_int_equal(c->failed_error, error);
    assert_int_equal(bow_embedded_close_error(c->bench.embedded), error);
    assert_int_equal(c->bench.probe.n_reads, 0);
    bench_end(&c->bench);
}

static int never_sure(struct bow_detect *detect, struct bow_slice bytes, void *user)
{
    (void)detect;
    (void)bytes;
    (void)user;
    return -EAGAIN;
}

static void test_detect_l60_closes_what_it_cannot_tell(void **state)
{
    struct chooser c;
    (void)state;
    begin(&c, choose);
    bench_feed(&c.bench, "C");
    assert_failed(&c, -EPROTONOSUPPORT);

    begin(&c, never_sure);
    bench_feed(&c.bench, "1234567");
    assert_int_equal(c.n_failed, 0);
    bench_feed(&c.bench, "8");
    assert_failed(&c, -EMSGSIZE);

    begin(&c, choose);
    bench_feed(&c.bench, "B");
    bow_embedded_end(c.bench.embedded);
    assert_failed(&c, -EBADMSG);
}

static void test_detect_l60_peer_that_ends_without_a_byte_is_no_failure(void **state)
{
    struct chooser c;
    (void)state;
    begin(&c, choose);
    bow_embedded_end(c.bench.embedded);
    assert_true(bow_embedded_is_closed(c.bench.embedded));
    assert_int_equal(bow_embedded_close_error(c.bench.embedded), 0);
    assert_int_equal(c.n_failed, 0);
    bench_end(&c.bench);
}

static void test_detect_f12_time_is_for_all_first_bytes_together(void **state)
{
    struct chooser c;
    (void)state;
    begin(&c, never_sure);
    for (int i = 0; i < 6; i++) {
        bench_advance(&c.bench, 1500 * FAKE_MS);
        bench_feed(&c.bench, "x");
    }
    bench_advance(&c.bench, FAKE_S - 1);
    assert_int_equal(c.n_failed, 0);
    bench_advance(&c.bench, 1);
    assert_failed(&c, -ETIMEDOUT);
}

static int close_inside(struct bow_detect *detect, struct bow_slice bytes, void *user)
{
    (void)bytes;
    (void)user;
    bow_channel_close(detect->handler.channel, -EACCES);
    return 0;
}

static int leave_inside(struct bow_detect *detect, struct bow_slice bytes, void *user)
{
    (void)bytes;
    (void)user;
    bow_channel_remove(&detect->handler);
    return -EAGAIN;
}

static void test_detect_l60_decision_may_close_or_take_it_out(void **state)
{
    struct chooser c;
    (void)state;
    begin(&c, close_inside);
    bench_feed(&c.bench, "x");
    assert_int_equal(bow_embedded_close_error(c.bench.embedded), -EACCES);
    assert_int_equal(c.n_failed, 0);
    bench_end(&c.bench);

    begin(&c, leave_inside);
    bench_feed(&c.bench, "x");
    bench_assert_read(&c.bench, "x");
    assert_false(bow_timer_is_armed(&c.detect.timer)); /* its memory may go */
    bench_end(&c.bench);
}

static int tls_or_plain(struct bow_detect *detect, struct bow_slice bytes, void *user)
{
    struct chooser *c = user;

    bow_channel_add_after(&detect->handler,
                          bow_detect_is_tls(bytes) ? &c->a.handler : &c->b.handler);
    return 0;
}

static void test_detect_l60_plain_and_tls_share_a_port(void **state)
{
    struct chooser c;
    (void)state;
    begin(&c, tls_or_plain);
    bench_feed(&c.bench, "\x16\x03\x01");
    assert_int_equal(c.a.n_bytes, 3);
    bench_end(&c.bench);
    begin(&c, tls_or_plain);
    bench_feed(&c.bench, "GET / HTTP/1.1\r\n");
    assert_int_equal(c.b.n_bytes, 16);
    bench_end(&c.bench);
}

static void test_detect_l60_without_a_decision_to_ask_is_refused(void **state)
{
    struct bow_detect detect;
    (void)state;
    assert_int_equal(bow_detect_init(&detect, &(struct bow_detect_options){.max_bytes = 1}),
                     -EINVAL);
}

#define N_SLOW 2000

struct slow {
    struct bow_detect detect;
    int peer;
    bool is_gone;
};

static void on_slow_failed(struct bow_detect *detect, int error, void *user)
{
    struct slow *slow = user;
    (void)detect;

    assert_int_equal(error, -ETIMEDOUT);
    slow->is_gone = true;
}

static int count_gone(const struct slow *slow)
{
    int n = 0;

    for (int i = 0; i < N_SLOW; i++) {
        n += slow[i].is_gone ? 1 : 0;
    }
    return n;
}

static void open_slow(struct net *net, struct slow *slow)
{
    const struct bow_detect_options options = {
        .decide = never_sure, .on_failed = on_slow_failed, .user = slow};

    struct bow_channel *channel = net_channel(net, NET_UNIX, &slow->peer, NULL, 0);
    assert_int_equal(bow_detect_init(&slow->detect, &options), 0);
    bow_channel_add_last(channel, &slow->detect.handler);
}

/* Both ends are in this process, and many systems give it 1,024 descriptors unless it asks. */
static void allow_descriptors(rlim_t n)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < n) {
        limit.rlim_cur = n;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
}

/* Half of them say nothing, half a byte each second; the default limit is ten seconds. */
static void test_detect_f12_2000_silent_and_slow_clients_are_all_closed_in_time(void **state)
{
    struct slow *slow = calloc(N_SLOW, sizeof(*slow));
    struct net net;
    (void)state;
    assert_non_null(slow);
    allow_descriptors(2 * N_SLOW + 100);
    net_begin_fake(&net);
    net.t.fake.stands_still = true;
    for (int i = 0; i < N_SLOW; i++) {
        open_slow(&net, &slow[i]);
    }
    for (int second = 0; second < 10; second++) {
        assert_int_equal(count_gone(slow), 0);
        for (int i = 0; i < N_SLOW; i += 2) {
            assert_int_equal(send(slow[i].peer, "x", 1, MSG_NOSIGNAL), 1);
        }
        net_turn(&net);
        fake_system_advance(&net.t.fake, FAKE_S);
        net_turn(&net);
    }
    assert_int_equal(count_gone(slow), N_SLOW);
    net_turn(&net);
    for (int i = 0; i < N_SLOW; i++) {
        char byte;
        assert_true(recv(slow[i].peer, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET);
        close(slow[i].peer);
    }
    net_end(&net);
    free(slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detect_l60_first_byte_puts_a_handler_in_and_gives_it_all),
        cmocka_unit_test(test_detect_l60_asks_again_with_more_until_it_is_decided),
        cmocka_unit_test(test_detect_l60_closes_what_it_cannot_tell),
        cmocka_unit_test(test_detect_l60_peer_that_ends_without_a_byte_is_no_failure),
        cmocka_unit_test(test_detect_f12_time_is_for_all_first_bytes_together),
        cmocka_unit_test(test_detect_l60_decision_may_close_or_take_it_out),
        cmocka_unit_test(test_detect_l60_plain_and_tls_share_a_port),
        cmocka_unit_test(test_detect_l60_without_a_decision_to_ask_is_refused),
        cmocka_unit_test(test_detect_f12_2000_silent_and_slow_clients_are_all_closed_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
