/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A whole connection, accepted, framed, answered and closed, with each allocation failing in
 * turn: it ends, in an answer or an error, and leaves nothing.
 */

#include "tests/support/net.h"

#include <bowline/executor.h>
#include <bowline/frame_codec.h>
#include <errno.h>
#include <string.h>

#define TARGET "unix-abstract:bow-channel-memory-test"
#define REQUEST_BYTES 20000 /* more than one read */

struct side {
    struct bow_frame_codec codec;
    struct bow_handler handler;
    struct talk *talk;
};

/* One conversation; the server's side is in the channel's own memory. */
struct talk {
    struct side client;
    int error;
    bool has_answer;
    bool has_ended; /* the connection, or the attempt to make one */
};

static struct side *side_of(struct bow_handler *handler)
{
    return (struct side *)(void *)((char *)handler - offsetof(struct side, handler));
}

static void write_frame(struct bow_handler *handler, size_t len)
{
    static const uint8_t body[REQUEST_BYTES];
    const uint8_t header[2] = {(uint8_t)(len >> 8), (uint8_t)len};
    struct bow_buf first = bow_buf_borrow(header, sizeof(header));
    struct bow_buf second = bow_buf_borrow(body, len);

    int rc = bow_handler_write(handler, &first, NULL, NULL);
    if (rc == 0) {
        rc = bow_handler_write(handler, &second, NULL, NULL);
    }
    if (rc < 0) {
        bow_handler_close(handler, rc);
        return;
    }
    bow_handler_flush(handler);
}

static void client_active(struct bow_handler *handler)
{
    write_frame(handler, REQUEST_BYTES);
}

static size_t client_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    side_of(handler)->talk->has_answer = true;
    bow_handler_close(handler, 0);
    return bytes->len;
}

static void client_inactive(struct bow_handler *handler, int error)
{
    side_of(handler)->talk->error = error;
}

static void client_removed(struct bow_handler *handler)
{
    side_of(handler)->talk->has_ended = true;
}

static const struct bow_handler_ops client_ops = {
    .name = "client",
    .on_active = client_active,
    .on_read = client_read,
    .on_inactive = client_inactive,
    .on_removed = client_removed,
};

static size_t server_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_buf kept;

    if (bow_buf_share(bow_loop_context(bow_channel_loop(handler->channel)), bytes, &kept) == 0) {
        bow_buf_unref(&kept);
    }
    write_frame(handler, 100);
    return bytes->len;
}

static const struct bow_handler_ops server_ops = {.name = "server", .on_read = server_read};

/* The handler runs on `executor`, if there is one. */
static int add_side(struct bow_channel *channel, struct side *side,
                    const struct bow_handler_ops *ops, struct bow_executor *executor)
{
    const struct bow_frame_codec_options options = {
        .max_frame_bytes = 65537, .length_bytes = 2, .strip_bytes = 2};

    assert_int_equal(bow_frame_codec_init(&side->codec, &options), 0);
    side->handler.ops = ops;
    bow_channel_add_last(channel, &side->codec.handler);
    if (executor != NULL) {
        return bow_channel_add_last_on(channel, &side->handler, executor);
    }
    bow_channel_add_last(channel, &side->handler);
    return 0;
}

static int on_client(struct bow_channel *channel, void *user)
{
    return add_side(channel, user, &client_ops, NULL);
}

static int on_server(struct bow_channel *channel, void *user)
{
    return add_side(channel, bow_channel_data(channel), &server_ops, user);
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct talk *talk = user;

    if (channel == NULL) {
        talk->error = error->error;
        talk->has_ended = true;
    }
}

static int talk_over(struct bow_loop *loop, struct bow_acceptor *acceptor)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct talk talk = {.error = 0};

    talk.client.talk = &talk;
    options.on_channel = on_client;
    options.user = &talk.client;
    int rc = bow_acceptor_start(acceptor);
    if (rc < 0) {
        return rc;
    }
    rc = bow_connect_start(loop, TARGET, &options, BOW_NEVER, on_connected, &talk, NULL, NULL);
    if (rc < 0) {
        return rc;
    }
    while (!talk.has_ended) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    /* A server that ran out of memory hangs up. */
    return talk.has_answer ? 0 : -ENOMEM;
}

static int serve_and_talk(struct bow_context *context, struct bow_executor *executor)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;
    struct bow_loop *loop = NULL;

    loop_options.thread = BOW_LOOP_OWNER;
    int rc = bow_loop_new(context, &loop_options, &loop);
    if (rc < 0) {
        return rc;
    }
    options.address = TARGET;
    options.loop = loop;
    options.channel.data_bytes = sizeof(struct side);
    options.channel.on_channel = on_server;
    options.channel.user = executor;
    rc = bow_acceptor_new(context, &options, &acceptor, NULL);
    if (rc == 0) {
        rc = talk_over(loop, acceptor);
        bow_acceptor_close(acceptor, NULL, NULL);
    }
    bow_loop_unref(loop);
    return rc;
}

static int connection(struct bow_context *context, void *user)
{
    (void)user;
    return serve_and_talk(context, NULL);
}

static int bound_connection(struct bow_context *context, void *user)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;
    (void)user;
    options.n_threads = 1;
    int rc = bow_executor_new(context, &options, &executor);
    if (rc < 0) {
        return rc;
    }
    rc = serve_and_talk(context, executor);
    bow_executor_unref(executor);
    return rc;
}

static void test_channel_memory_each_failing_allocation_ends_in_an_error(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, connection, NULL) > 10);
}

static void test_channel_memory_the_same_with_the_server_on_an_executor(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, bound_connection, NULL) > 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_memory_each_failing_allocation_ends_in_an_error),
        cmocka_unit_test(test_channel_memory_the_same_with_the_server_on_an_executor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
