/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connections within the process: names, who waits there, bounds, two threads. */

#include "tests/support/forks.h"
#include "tests/support/net.h"
#include "transport/memory/inproc.h"

#include <bowline/limits.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* A listener whose channels have one probe, and clients with one as well, on one loop. */
struct pair {
    struct loops t;
    struct bow_loop *loop;
    struct bow_acceptor *acceptor;
    struct probe served;
    struct probe client;
    struct bow_channel *served_channel;
    struct bow_channel *client_channel;
    struct bow_transport_error error;
    int n_connected;
    int n_failed;
};

static int on_served(struct bow_channel *channel, void *user)
{
    struct pair *p = user;

    if (p->served_channel == NULL) {
        p->served_channel = bow_channel_ref(channel);
        bow_channel_add_last(channel, &p->served.handler);
    }
    return 0;
}

static int on_client(struct bow_channel *channel, void *user)
{
    struct pair *p = user;

    if (p->client_channel == NULL) {
        p->client_channel = bow_channel_ref(channel);
        bow_channel_add_last(channel, &p->client.handler);
    }
    return 0;
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct pair *p = user;

    p->n_connected += channel != NULL;
    p->n_failed += channel == NULL;
    if (error != NULL) {
        p->error = *error;
    }
}

static int listen_on(struct pair *p, const char *address, struct bow_acceptor **ret_acceptor)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;

    options.address = address;
    options.loop = p->loop;
    options.backlog = 2;
    options.channel.on_channel = on_served;
    options.channel.user = p;
    return bow_acceptor_new(p->t.context, &options, ret_acceptor, &p->error);
}

static int connect_to(struct pair *p, const char *target)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;

    options.on_channel = on_client;
    options.user = p;
    return bow_connect_start(p->loop, target, &options, 60 * FAKE_S, on_connected, p, NULL,
                             &p->error);
}

static void turn(struct pair *p, int n)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(bow_loop_run_once(p->loop, 0), 0);
    }
}

static void begin(struct pair *p)
{
    memset(p, 0, sizeof(*p));
    loops_begin(&p->t);
    p->loop = loops_new_owner(&p->t);
    probe_init(&p->served, NULL);
    probe_init(&p->client, NULL);
    p->served.checks_pattern = true;
    assert_int_equal(listen_on(p, "inproc:here", &p->acceptor), 0);
}

static void begin_connected(struct pair *p)
{
    begin(p);
    assert_int_equal(bow_acceptor_start(p->acceptor), 0);
    assert_int_equal(connect_to(p, "inproc:here"), 0);
    turn(p, 6);
    assert_int_equal(p->n_connected, 1);
    assert_non_null(p->served_channel);
}

static void end(struct pair *p)
{
    bow_channel_unref(p->served_channel);
    bow_channel_unref(p->client_channel);
    bow_acceptor_close(p->acceptor, NULL, NULL);
    assert_int_equal(bow_loop_shutdown(p->loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(p->loop), 0);
    bow_loop_unref(p->loop);
    loops_end(&p->t);
    probe_fini(&p->served);
    probe_fini(&p->client);
}

/* Names */

static void test_inproc_l61_connection_has_its_name_and_no_descriptor(void **state)
{
    struct pair p;
    struct bow_peer_credentials credentials;
    (void)state;
    begin(&p);
    int n_fds = loops_count_fds();
    assert_int_equal(bow_acceptor_start(p.acceptor), 0);
    assert_int_equal(connect_to(&p, "inproc:here"), 0);
    turn(&p, 6);
    assert_int_equal(p.n_connected, 1);
    assert_int_equal(loops_count_fds(), n_fds);
    assert_int_equal(bow_acceptor_port(p.acceptor), 0);
    assert_string_equal(bow_channel_peer(p.client_channel), "inproc:here");
    assert_string_equal(bow_channel_peer(p.served_channel), "inproc:here");
    assert_int_equal(bow_channel_peer_credentials(p.served_channel, &credentials), 0);
    assert_int_equal(credentials.pid, getpid());
    end(&p);
}

static void test_inproc_name_that_nobody_has_is_refused_with_the_reason(void **state)
{
    struct pair p;
    (void)state;
    begin(&p);
    assert_int_equal(connect_to(&p, "inproc:nowhere"), 0);
    turn(&p, 3);
    assert_int_equal(p.n_failed, 1);
    assert_int_equal(p.error.error, -ECONNREFUSED);
    assert_non_null(strstr(p.error.text, "connecting to inproc:nowhere"));
    assert_non_null(strstr(p.error.text, "nobody listens on that name of this context"));
    end(&p);
}

static void test_inproc_name_in_use_is_refused_and_free_after_close(void **state)
{
    struct pair p;
    struct bow_acceptor *other = NULL;
    (void)state;
    begin(&p);
    assert_int_equal(listen_on(&p, "inproc:here", &other), -EADDRINUSE);
    assert_non_null(strstr(p.error.text, "binding inproc:here"));
    assert_non_null(strstr(p.error.text, "listens on that name of this context already"));
    assert_int_equal(listen_on(&p, "inproc:there", &other), 0);
    bow_acceptor_close(other, NULL, NULL);
    turn(&p, 2);
    assert_int_equal(listen_on(&p, "inproc:there", &other), 0);
    bow_acceptor_close(other, NULL, NULL);
    end(&p);
}

static void test_inproc_name_that_cannot_be_one_is_refused(void **state)
{
    struct pair p;
    struct bow_acceptor *none = NULL;
    char name[160] = "inproc:";
    (void)state;
    begin(&p);
    memset(name + 7, 'x', 101);
    assert_int_equal(listen_on(&p, name, &none), -EINVAL);
    assert_non_null(strstr(p.error.text, "at most 100 bytes"));
    assert_int_equal(connect_to(&p, name), -EINVAL);
    name[7 + 100] = '\0';
    assert_int_equal(listen_on(&p, name, &none), 0);
    bow_acceptor_close(none, NULL, NULL);
    assert_int_equal(listen_on(&p, "inproc:", &none), -EINVAL);
    assert_int_equal(listen_on(&p, "inproc:a b", &none), -EINVAL);
    assert_int_equal(listen_on(&p, "inproc:a,b", &none), -EINVAL);
    assert_int_equal(bow_address_is_local("inproc:a"), 1);
    end(&p);
}

static void test_inproc_names_of_two_contexts_are_apart(void **state)
{
    struct pair p;
    struct bow_context *other = NULL;
    struct bow__inproc_end *none = NULL;
    (void)state;
    begin(&p);
    assert_int_equal(bow_context_new(NULL, &other), 0);
    assert_int_equal(bow__inproc_connect(other, "here", &none), -ECONNREFUSED);
    assert_int_equal(bow_context_bytes(other), 0);
    bow_context_unref(other);
    end(&p);
}

/* Who waits */

static void test_inproc_more_than_the_backlog_wait_and_are_served_later(void **state)
{
    struct pair p;
    (void)state;
    begin(&p);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(connect_to(&p, "inproc:here"), 0);
    }
    turn(&p, 4);
    assert_int_equal(p.n_connected, 2);
    assert_int_equal(p.n_failed, 0);
    assert_int_equal(bow_acceptor_start(p.acceptor), 0);
    for (int i = 0; i < 10; i++) {
        fake_system_advance(&p.t.fake, 20 * FAKE_MS);
        turn(&p, 4);
    }
    assert_int_equal(p.n_connected, 4);
    end(&p);
}

static void test_inproc_listener_gone_resets_who_waited(void **state)
{
    struct pair p;
    (void)state;
    begin(&p);
    assert_int_equal(connect_to(&p, "inproc:here"), 0);
    turn(&p, 3);
    assert_int_equal(p.n_connected, 1);
    bow_acceptor_close(p.acceptor, NULL, NULL);
    turn(&p, 5);
    assert_int_equal(p.client.n_inactive, 1);
    assert_int_equal(p.client.inactive_error, -ECONNRESET);
    assert_int_equal(listen_on(&p, "inproc:here", &p.acceptor), 0);
    end(&p);
}

/* Bounds */

static void write_pattern(struct pair *p, uint8_t *bytes, size_t len)
{
    net_fill_pattern(bytes, len, 0);
    const struct bow_buf buf = bow_buf_borrow(bytes, len);
    assert_int_equal(bow_channel_write_and_flush(p->client_channel, &buf, probe_done, &p->client),
                     0);
}

static void test_inproc_l57_f15_reader_that_pauses_bounds_what_is_on_its_way(void **state)
{
    struct pair p;
    uint8_t *bytes = malloc(MIB);
    (void)state;
    assert_non_null(bytes);
    begin_connected(&p);
    bow_channel_pause_read(p.served_channel);
    turn(&p, 1);
    size_t before = bow_context_bytes(p.t.context);
    write_pattern(&p, bytes, MIB);
    turn(&p, 20);
    assert_false(bow_channel_is_writable(p.client_channel));
    assert_int_equal(p.served.n_bytes, 0);
    assert_true(bow_context_bytes(p.t.context) - before <=
                MIB + BOW_LIMIT_INPROC_BYTES + (8 << 10));
    bow_channel_resume_read(p.served_channel);
    turn(&p, 60);
    assert_int_equal(p.served.n_bytes, MIB);
    assert_int_equal(p.client.n_completions, 1);
    assert_true(bow_channel_is_writable(p.client_channel));
    free(bytes);
    end(&p);
}

static uint64_t n_events(const struct pair *p)
{
    struct bow_loop_stats stats = {.size = sizeof(stats)};

    assert_int_equal(bow_loop_get_stats(p->loop, &stats), 0);
    return stats.events;
}

static void test_inproc_l20_full_and_paused_is_told_nothing_more(void **state)
{
    struct pair p;
    uint8_t *bytes = malloc(MIB);
    (void)state;
    assert_non_null(bytes);
    begin_connected(&p);
    bow_channel_pause_read(p.served_channel);
    write_pattern(&p, bytes, MIB);
    turn(&p, 20);
    uint64_t before = n_events(&p);
    turn(&p, 20);
    assert_int_equal(n_events(&p), before);
    free(bytes);
    end(&p);
}

static void test_inproc_l06_io_does_not_prolong_a_quiet_period(void **state)
{
    struct pair p;
    (void)state;
    begin_connected(&p);
    assert_int_equal(bow_loop_shutdown(p.loop, FAKE_S, 10 * FAKE_S), 0);
    uint64_t started = bow_loop_now(p.loop);
    uint8_t byte = 0;
    for (int i = 0; i < 3; i++) {
        fake_system_advance(&p.t.fake, 400 * FAKE_MS);
        const struct bow_buf buf = bow_buf_borrow(&byte, 1);
        p.served.checks_pattern = false;
        (void)!bow_channel_write_and_flush(p.client_channel, &buf, NULL, NULL);
        if (bow_loop_run_once(p.loop, 0) == -ESHUTDOWN) {
            break;
        }
    }
    assert_int_equal(bow_loop_run(p.loop), 0);
    assert_true(bow_loop_now(p.loop) - started < 2 * FAKE_S);
    end(&p);
}

/* Two threads */

struct apart {
    struct loops t;
    struct bow_loop *loops[2];
    struct bow_acceptor *acceptor;
    _Atomic(uint64_t) n_bytes;
    atomic_int n_closed;
    atomic_int n_completed;
    int last_error;
    _Atomic(struct bow_channel *) client;
};

static size_t echo(struct bow_handler *handler, const struct bow_buf *bytes)
{
    (void)!bow_channel_write_and_flush(handler->channel, bytes, NULL, NULL);
    return bytes->len;
}

static void echo_writable(struct bow_handler *handler, bool writable)
{
    (writable ? bow_channel_resume_read : bow_channel_pause_read)(handler->channel);
}

static const struct bow_handler_ops echo_ops = {.on_read = echo, .on_writable = echo_writable};

static int add_echo(struct bow_channel *channel, void *user)
{
    struct bow_handler *handler = bow_channel_data(channel);
    (void)user;

    handler->ops = &echo_ops;
    bow_channel_add_last(channel, handler);
    return 0;
}

struct counter {
    struct bow_handler handler;
    struct apart *apart;
};

static size_t count(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct apart *apart = ((struct counter *)(void *)handler)->apart;
    uint64_t at = atomic_fetch_add(&apart->n_bytes, bytes->len);

    assert_true(net_is_pattern(bytes->data, bytes->len, (size_t)at));
    return bytes->len;
}

static void counter_inactive(struct bow_handler *handler, int error)
{
    struct apart *apart = ((struct counter *)(void *)handler)->apart;

    apart->last_error = error; /* read when the loops have ended */
    atomic_fetch_add(&apart->n_closed, 1);
}

static const struct bow_handler_ops counter_ops = {.on_read = count,
                                                   .on_inactive = counter_inactive};

static int add_counter(struct bow_channel *channel, void *user)
{
    struct counter *counter = bow_channel_data(channel);

    counter->handler.ops = &counter_ops;
    counter->apart = user;
    bow_channel_add_last(channel, &counter->handler);
    return 0;
}

static void on_apart_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                               void *user)
{
    struct apart *apart = user;

    assert_null(error);
    atomic_store(&apart->client, bow_channel_ref(channel));
}

static int run_connect(void *user)
{
    struct apart *apart = user;
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;

    options.data_bytes = sizeof(struct counter);
    options.on_channel = add_counter;
    options.user = apart;
    return bow_connect_start(apart->loops[1], "inproc:echo", &options, 10 * FAKE_S,
                             on_apart_connected, apart, NULL, NULL);
}

static void on_apart_written(struct bow_channel *channel, int error, void *user)
{
    (void)channel;
    assert_int_equal(error, 0);
    atomic_fetch_add((atomic_int *)user, 1);
}

#define await(condition)                                                                           \
    do {                                                                                           \
        uint64_t await_until = net_deadline();                                                     \
        while (!(condition)) {                                                                     \
            assert_false(net_is_late(await_until));                                                \
            usleep(100);                                                                           \
        }                                                                                          \
    } while (0)

static void begin_apart(struct apart *apart)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;

    memset(apart, 0, sizeof(*apart));
    loops_begin_real(&apart->t);
    for (int i = 0; i < 2; i++) {
        apart->loops[i] = loops_new_threaded(&apart->t);
    }
    options.address = "inproc:echo";
    options.loop = apart->loops[0];
    options.channel.data_bytes = sizeof(struct bow_handler);
    options.channel.on_channel = add_echo;
    assert_int_equal(bow_acceptor_new(apart->t.context, &options, &apart->acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(apart->acceptor), 0);
    assert_int_equal(bow_loop_execute(apart->loops[1], "connect", run_connect, apart), 0);
    await(atomic_load(&apart->client) != NULL);
}

static void end_apart(struct apart *apart)
{
    bow_channel_unref(atomic_load(&apart->client));
    bow_acceptor_close(apart->acceptor, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        loops_stop(apart->loops[i]);
    }
    loops_end(&apart->t);
}

static void test_inproc_l61_f01_between_two_loops_no_byte_is_lost(void **state)
{
    enum { N_WRITES = 400, WRITE_BYTES = 10007 };
    struct apart apart;
    uint8_t *bytes = malloc(WRITE_BYTES);
    (void)state;
    assert_non_null(bytes);
    begin_apart(&apart);
    for (size_t i = 0; i < N_WRITES; i++) {
        net_fill_pattern(bytes, WRITE_BYTES, i * WRITE_BYTES);
        const struct bow_buf buf = bow_buf_borrow(bytes, WRITE_BYTES);
        assert_int_equal(bow_channel_write_and_flush(atomic_load(&apart.client), &buf,
                                                     on_apart_written, &apart.n_completed),
                         0);
    }
    await(atomic_load(&apart.n_bytes) == (uint64_t)N_WRITES * WRITE_BYTES);
    await(atomic_load(&apart.n_completed) == N_WRITES);
    bow_channel_shutdown_write(atomic_load(&apart.client));
    await(atomic_load(&apart.n_closed) == 1);
    free(bytes);
    end_apart(&apart);
}

/* The other end may close, and its loop end, while this one has rung for it. */
static void test_inproc_closed_while_it_is_told_leaves_nothing(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct apart apart;
        begin_apart(&apart);
        for (int i = 0; i < round % 7; i++) {
            uint8_t byte = 0;
            net_fill_pattern(&byte, 1, (size_t)i);
            const struct bow_buf buf = bow_buf_borrow(&byte, 1);
            (void)!bow_channel_write_and_flush(atomic_load(&apart.client), &buf, NULL, NULL);
        }
        if (round % 2 == 0) {
            bow_channel_close(atomic_load(&apart.client), 0);
        } else {
            bow_channel_shutdown_write(atomic_load(&apart.client));
        }
        await(round % 3 != 0 || atomic_load(&apart.n_closed) == 1);
        end_apart(&apart);
        assert_int_equal(atomic_load(&apart.n_closed), 1);
        if (round % 3 == 0) { /* else its loop, or the other one's, may have ended first */
            assert_int_equal(apart.last_error, 0);
        }
    }
}

/* Memory */

static int connect_once(struct bow_context *context, void *user)
{
    struct bow__inproc_listener *listener = NULL;
    struct bow__inproc_end *end = NULL;
    (void)user;

    int rc = bow__inproc_listen(context, "short", 10, &listener);
    if (rc < 0) {
        return rc;
    }
    rc = bow__inproc_connect(context, "short", &end);
    if (rc == 0) {
        const struct bow__socket socket = bow__inproc_socket(end);
        bow__socket_close(&socket);
    }
    bow__inproc_unlisten(listener);
    return rc;
}

static void test_inproc_connect_with_each_allocation_failing_leaves_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, connect_once, NULL) >= 4);
}

/* After fork(): the names that the parent has used may be locked for ever. */
static void test_inproc_f60_names_that_were_used_are_others_in_the_child(void **state)
{
    struct bow__inproc_listener *listener = NULL;
    struct bow__inproc_listener *another = NULL;
    struct bow__inproc_end *end = NULL;
    struct forks forks;
    struct loops t;
    (void)state;
    loops_begin_real(&t);
    assert_int_equal(bow__inproc_listen(t.context, "a", 2, &listener), 0);
    assert_int_equal(bow__inproc_connect(t.context, "a", &end), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow__inproc_connect(t.context, "a", &end) == -ECONNREFUSED);
        FORKS_EXPECT(bow__inproc_listen(t.context, "a", 2, &another) == 0);
        FORKS_EXPECT(bow__inproc_connect(t.context, "a", &end) == 0);
        bow__inproc_unlisten(listener); /* the parent's */
        _exit(0);
    }
    forks_end(&forks);
    bow__inproc_reset(end);
    bow__inproc_unlisten(listener);
    loops_end(&t);
}

/* Listened on before daemon(), and used behind it. */
static void test_inproc_f60_names_that_were_only_listened_on_go_along(void **state)
{
    struct bow__inproc_listener *listener = NULL;
    struct bow__inproc_end *end = NULL;
    struct forks forks;
    struct loops t;
    (void)state;
    loops_begin_real(&t);
    assert_int_equal(bow__inproc_listen(t.context, "a", 2, &listener), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow__inproc_connect(t.context, "a", &end) == 0);
        _exit(0);
    }
    forks_end(&forks);
    assert_int_equal(bow__inproc_connect(t.context, "a", &end), 0);
    bow__inproc_reset(end);
    bow__inproc_unlisten(listener);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inproc_l61_connection_has_its_name_and_no_descriptor),
        cmocka_unit_test(test_inproc_name_that_nobody_has_is_refused_with_the_reason),
        cmocka_unit_test(test_inproc_name_in_use_is_refused_and_free_after_close),
        cmocka_unit_test(test_inproc_name_that_cannot_be_one_is_refused),
        cmocka_unit_test(test_inproc_names_of_two_contexts_are_apart),
        cmocka_unit_test(test_inproc_more_than_the_backlog_wait_and_are_served_later),
        cmocka_unit_test(test_inproc_listener_gone_resets_who_waited),
        cmocka_unit_test(test_inproc_l57_f15_reader_that_pauses_bounds_what_is_on_its_way),
        cmocka_unit_test(test_inproc_l20_full_and_paused_is_told_nothing_more),
        cmocka_unit_test(test_inproc_l06_io_does_not_prolong_a_quiet_period),
        cmocka_unit_test(test_inproc_l61_f01_between_two_loops_no_byte_is_lost),
        cmocka_unit_test(test_inproc_closed_while_it_is_told_leaves_nothing),
        cmocka_unit_test(test_inproc_connect_with_each_allocation_failing_leaves_nothing),
        cmocka_unit_test(test_inproc_f60_names_that_were_used_are_others_in_the_child),
        cmocka_unit_test(test_inproc_f60_names_that_were_only_listened_on_go_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
