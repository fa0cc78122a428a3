/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The chain of handlers: order, changes while it runs, errors. */

#include "tests/support/net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Events of all probes of a test in one line: each writes its letter in front. */
struct chain {
    struct net net;
    struct probe probes[4];
    char order[1024];
    struct bow_channel *channel;
    int peer;
};

static char letter_of(const struct probe *probe)
{
    const struct chain *chain = probe->user;
    return (char)('a' + (probe - chain->probes));
}

static void note(struct probe *probe, const char *event)
{
    struct chain *chain = probe->user;
    size_t len = strlen(chain->order);

    snprintf(chain->order + len, sizeof(chain->order) - len, " %c:%s", letter_of(probe), event);
}

static size_t note_and_pass(struct probe *probe, const struct bow_buf *bytes)
{
    note(probe, "read");
    bow_handler_fire_read(&probe->handler, bytes);
    return bytes->len;
}

static void begin(struct chain *chain, int n)
{
    memset(chain->order, 0, sizeof(chain->order));
    net_begin(&chain->net);
    for (int i = 0; i < 4; i++) {
        probe_init(&chain->probes[i], &chain->net);
        chain->probes[i].user = chain;
        chain->probes[i].on_event = note;
        chain->probes[i].on_read = note_and_pass;
    }
    chain->channel = net_channel(&chain->net, NET_UNIX, &chain->peer, chain->probes, n);
}

static void end(struct chain *chain)
{
    close(chain->peer);
    net_end(&chain->net);
}

static void test_pipeline_l58_inbound_goes_head_to_tail_and_removal_tail_to_head(void **state)
{
    struct chain chain;
    (void)state;
    begin(&chain, 3);
    assert_int_equal(send(chain.peer, "x", 1, MSG_NOSIGNAL), 1);
    net_run_until(&chain.net, chain.probes[2].n_completes == 1);
    shutdown(chain.peer, SHUT_WR);
    net_run_until(&chain.net, chain.probes[0].n_removed == 1);
    assert_string_equal(chain.order,
                        " a:added b:added c:added a:active b:active c:active a:read b:read c:read "
                        "a:complete b:complete c:complete a:eof b:eof c:eof a:inactive b:inactive "
                        "c:inactive c:removed b:removed a:removed");
    end(&chain);
}

static void test_pipeline_l58_handlers_are_added_first_last_and_after(void **state)
{
    struct chain chain;
    (void)state;
    begin(&chain, 1);
    bow_channel_add_first(chain.channel, &chain.probes[1].handler);
    bow_channel_add_last(chain.channel, &chain.probes[2].handler);
    bow_channel_add_after(&chain.probes[1].handler, &chain.probes[3].handler);
    chain.order[0] = '\0';
    bow_handler_fire_error(&chain.probes[1].handler, -EIO); /* seen by those behind it */
    assert_string_equal(chain.order, " d:error a:error c:error");
    end(&chain);
}

static size_t add_behind_and_leave(struct probe *probe, const struct bow_buf *bytes)
{
    struct chain *chain = probe->user;

    note(probe, "read");
    bow_channel_add_after(&probe->handler, &chain->probes[3].handler);
    bow_channel_remove(&probe->handler);
    bow_channel_remove(&probe->handler);           /* idempotent */
    assert_int_equal(probe->n_removed, 0);         /* not inside its own callback */
    bow_handler_fire_read(&probe->handler, bytes); /* it can still pass on */
    return bytes->len;
}

static void test_pipeline_l58_f20_handler_removes_itself_while_it_runs(void **state)
{
    struct chain chain;
    (void)state;
    begin(&chain, 3);
    chain.probes[1].on_read = add_behind_and_leave;
    chain.order[0] = '\0';
    assert_int_equal(send(chain.peer, "x", 1, MSG_NOSIGNAL), 1);
    net_run_until(&chain.net, chain.probes[1].n_removed == 1);
    assert_string_equal(chain.order, " a:read b:read d:added d:read c:read a:complete d:complete "
                                     "c:complete b:removed");
    assert_int_equal(chain.probes[1].n_inactive, 0);
    end(&chain);
    assert_int_equal(chain.probes[1].n_inactive, 0); /* nothing after on_removed */
    assert_int_equal(chain.probes[1].n_removed, 1);
}

static size_t remove_all_others(struct probe *probe, const struct bow_buf *bytes)
{
    struct chain *chain = probe->user;

    note(probe, "read");
    bow_channel_remove(&chain->probes[0].handler);
    bow_channel_remove(&chain->probes[2].handler);
    bow_handler_fire_read(&probe->handler, bytes);
    return bytes->len;
}

static void test_pipeline_l58_f20_handler_removes_its_neighbours_while_it_runs(void **state)
{
    struct chain chain;
    (void)state;
    begin(&chain, 3);
    chain.probes[1].on_read = remove_all_others;
    chain.order[0] = '\0';
    assert_int_equal(send(chain.peer, "x", 1, MSG_NOSIGNAL), 1);
    net_run_until(&chain.net, chain.probes[2].n_removed == 1);
    assert_string_equal(chain.order, " a:read b:read b:complete a:removed c:removed");
    assert_int_equal(send(chain.peer, "y", 1, MSG_NOSIGNAL), 1);
    net_run_until(&chain.net, chain.probes[1].n_bytes == 2);
    end(&chain);
}

/* Takes a byte, and has another look at the rest before it. */
static size_t take_one_and_add_in_front(struct probe *probe, const struct bow_buf *bytes)
{
    struct chain *chain = probe->user;

    note(probe, "read");
    if (probe->n_reads == 1) {
        bow_channel_add_first(chain->channel, &chain->probes[1].handler);
        return 1;
    }
    return bytes->len;
}

static void test_pipeline_l58_rest_goes_through_a_handler_added_in_front(void **state)
{
    struct chain chain;
    (void)state;
    begin(&chain, 1);
    chain.probes[0].on_read = take_one_and_add_in_front;
    chain.order[0] = '\0';
    assert_int_equal(send(chain.peer, "xyz", 3, MSG_NOSIGNAL), 3);
    net_run_until(&chain.net, chain.probes[0].n_completes == 1);
    assert_string_equal(chain.order, " a:read b:added b:read a:read b:complete a:complete");
    assert_int_equal(chain.probes[1].n_bytes, 2);
    assert_int_equal(chain.probes[0].n_bytes, 3);
    end(&chain);
}

static void test_pipeline_l58_can_fire_read_says_whether_bytes_would_be_delivered(void **state)
{
    const struct bow_buf empty = bow_buf_borrow("", 0);
    struct chain chain;
    (void)state;
    begin(&chain, 2);
    struct bow_handler *first = &chain.probes[0].handler;
    struct bow_handler *last = &chain.probes[1].handler;
    chain.order[0] = '\0';
    assert_true(bow_handler_can_fire_read(first));
    assert_false(bow_handler_can_fire_read(last)); /* nobody reads behind it */
    bow_handler_fire_read(first, &empty);
    assert_string_equal(chain.order, " b:read");
    bow_channel_pause_read(chain.channel);
    assert_false(bow_handler_can_fire_read(first));
    bow_handler_fire_read(first, &empty);
    assert_string_equal(chain.order, " b:read"); /* it was right */
    bow_channel_resume_read(chain.channel);
    assert_true(bow_handler_can_fire_read(first));
    bow_channel_remove(first);
    assert_false(bow_handler_can_fire_read(first)); /* what it has is its successor's */
    net_turn(&chain.net);
    bow_channel_add_first(chain.channel, first);
    assert_true(bow_handler_can_fire_read(first));
    bow_channel_close(chain.channel, 0);
    assert_false(bow_handler_can_fire_read(first));
    end(&chain);
}

/* Cuts single bytes; what the receiver of one does is seen before the next. */
static size_t cut_bytes(struct probe *probe, const struct bow_buf *bytes)
{
    size_t done = 0;

    note(probe, "read");
    while (done < bytes->len && bow_handler_can_fire_read(&probe->handler)) {
        const struct bow_buf one = bow_buf_borrow(bytes->data + done, 1);
        bow_handler_fire_read(&probe->handler, &one);
        done++;
    }
    return done;
}

static size_t take_out_the_first(struct probe *probe, const struct bow_buf *bytes)
{
    struct chain *chain = probe->user;

    note(probe, "read");
    bow_channel_remove(&chain->probes[0].handler);
    return bytes->len;
}

static void test_pipeline_l58_cutter_that_is_taken_out_leaves_the_rest_whole(void **state)
{
    struct chain chain;
    (void)state;
    begin(&chain, 2);
    chain.probes[0].on_read = cut_bytes;
    chain.probes[1].on_read = take_out_the_first;
    chain.order[0] = '\0';
    assert_int_equal(send(chain.peer, "abc", 3, MSG_NOSIGNAL), 3);
    net_run_until(&chain.net, chain.probes[0].n_removed == 1);
    net_run_until(&chain.net, chain.probes[1].n_bytes == 3);
    assert_non_null(strstr(chain.order, " a:read b:read b:read")); /* "a", then "bc" */
    assert_int_equal(chain.probes[1].n_reads, 2);
    end(&chain);
}

static void test_pipeline_l58_error_travels_until_it_is_handled(void **state)
{
    struct chain chain;
    (void)state;
    begin(&chain, 3);
    chain.probes[1].stops_events = true;
    chain.order[0] = '\0';
    bow_handler_fire_error(&chain.probes[0].handler, -EBADMSG);
    assert_string_equal(chain.order, " b:error");
    assert_string_equal(chain.net.t.log, "");
    assert_int_equal(chain.probes[1].last_error, -EBADMSG);
    end(&chain);
}

static void test_pipeline_l58_error_nobody_handles_is_logged_with_the_peer(void **state)
{
    struct chain chain;
    (void)state;
    begin(&chain, 1);
    bow_handler_fire_error(&chain.probes[0].handler, -EBADMSG);
    assert_non_null(strstr(chain.net.t.log, "unix:"));
    assert_non_null(strstr(chain.net.t.log, "EBADMSG"));
    net_turn(&chain.net);
    assert_true(bow_channel_is_active(chain.channel)); /* of a handler, not of the socket */
    end(&chain);
}

static void test_pipeline_l58_channel_without_handlers_ends_with_its_peer(void **state)
{
    struct net net;
    int peer;
    (void)state;
    net_begin(&net);
    struct bow_channel *channel = bow_channel_ref(net_channel(&net, NET_TCP, &peer, NULL, 0));
    close(peer);
    net_run_until(&net, !bow_channel_is_active(channel));
    bow_channel_unref(channel);
    net_end(&net);
}

static int refuse(struct bow_channel *channel, void *user)
{
    bow_channel_add_last(channel, &((struct probe *)user)->handler);
    return -EACCES;
}

static void on_done(struct bow_channel *channel, const struct bow_transport_error *error,
                    void *user)
{
    assert_null(channel);
    *(int *)user = error->error;
}

static void test_pipeline_that_cannot_be_set_up_closes_without_having_been_active(void **state)
{
    struct net net;
    struct probe probe;
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_acceptor_options listening = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;
    struct bow_connect *connect = NULL;
    int error = 0;
    (void)state;
    net_begin(&net);
    net_turn(&net);
    probe_init(&probe, &net);
    listening.address = "unix-abstract:bow-pipeline-test";
    listening.loop = net.loop;
    assert_int_equal(bow_acceptor_new(net.t.context, &listening, &acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    options.on_channel = refuse;
    options.user = &probe;
    assert_int_equal(bow_connect_start(net.loop, listening.address, &options, FAKE_S, on_done,
                                       &error, &connect, NULL),
                     0);
    net_run_until(&net, error != 0);
    assert_int_equal(error, -EACCES);
    net_run_until(&net, probe.n_removed == 1);
    assert_string_equal(probe.log, " added removed");
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_l58_inbound_goes_head_to_tail_and_removal_tail_to_head),
        cmocka_unit_test(test_pipeline_l58_handlers_are_added_first_last_and_after),
        cmocka_unit_test(test_pipeline_l58_f20_handler_removes_itself_while_it_runs),
        cmocka_unit_test(test_pipeline_l58_f20_handler_removes_its_neighbours_while_it_runs),
        cmocka_unit_test(test_pipeline_l58_rest_goes_through_a_handler_added_in_front),
        cmocka_unit_test(test_pipeline_l58_can_fire_read_says_whether_bytes_would_be_delivered),
        cmocka_unit_test(test_pipeline_l58_cutter_that_is_taken_out_leaves_the_rest_whole),
        cmocka_unit_test(test_pipeline_l58_error_travels_until_it_is_handled),
        cmocka_unit_test(test_pipeline_l58_error_nobody_handles_is_logged_with_the_peer),
        cmocka_unit_test(test_pipeline_l58_channel_without_handlers_ends_with_its_peer),
        cmocka_unit_test(test_pipeline_that_cannot_be_set_up_closes_without_having_been_active),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
