/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `bowline call`: one call of any kind. Where both sides stream, a thread of its own sends what
 * comes on standard input, while the first one shows what the server sends.
 */
#include "commands.h"
#include "headers.h"
#include "input.h"
#include "peer.h"
#include "say.h"
#include "show.h"
#include "source.h"
#include <bowline/stream.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct calling {
    const struct options *options;
    struct peer peer;
    struct bow_schema *schema;
    const struct bow_method *method;
    struct headers headers;
    struct input input;
    struct bow_call_options call_options;
    struct bow_stream *stream;
    uint64_t begun_ns;
    uint64_t first_ns; /* when the first message had come; 0: none has */
    size_t n_received;
    atomic_int send_rc; /* of the one that sends */
};

static bool has_flag(const struct calling *it, uint32_t flag)
{
    return (it->method->flags & flag) != 0;
}

/* Requests */

/* The one message of a method whose client sends one; {} where none is given. */
static int read_request(struct calling *it, struct bow_arena *arena, ProtobufCMessage **ret_request)
{
    static const struct bow_slice empty = {(const uint8_t *)"{}", 2};
    struct bow_slice text = empty;
    struct bow_slice more;

    (void)input_next(&it->input, &text);
    int rc = input_message(&it->input, text, it->method->input, it->schema, arena, ret_request);
    if (rc == EXIT_OK && text.data != empty.data && input_next(&it->input, &more)) {
        rc = say_failed(EXIT_USAGE, "%s has more than one message, and %s takes one",
                        it->input.name, it->method->path + 1);
    }
    return rc;
}

/* Send until there is no more, or the call has ended. */
static int send_all(struct calling *it)
{
    struct bow_slice text;
    int rc = EXIT_OK;

    while (rc == EXIT_OK && input_next(&it->input, &text)) {
        struct bow_arena *arena = bow_arena_new(NULL, 0);
        ProtobufCMessage *message = NULL;
        rc = input_message(&it->input, text, it->method->input, it->schema, arena, &message);
        int sent = rc == EXIT_OK ? bow_stream_write(it->stream, message, BOW_NEVER) : 0;
        bow_arena_free(arena);
        if (sent == -ECANCELED) {
            return EXIT_OK; /* how it ended, the other side says */
        }
        if (sent < 0) {
            rc = say_failed(EXIT_FAILED, "a message cannot be sent: %s", strerror(-sent));
        }
    }
    if (rc != EXIT_OK) {
        bow_stream_cancel(it->stream);
        return rc;
    }
    (void)bow_stream_half_close(it->stream);
    return EXIT_OK;
}

static void *send_on_thread(void *user)
{
    struct calling *it = user;

    atomic_store(&it->send_rc, send_all(it));
    return NULL;
}

/* Replies */

static void note_message(struct calling *it)
{
    it->n_received++;
    if (it->first_ns == 0) {
        it->first_ns = clock_ns();
    }
}

static int receive_all(struct calling *it)
{
    const ProtobufCMessage *message = NULL;
    int rc = EXIT_OK;

    while (rc == EXIT_OK && bow_stream_receive(it->stream, BOW_NEVER, &message) == 1) {
        note_message(it);
        rc = show_message(it->options, it->schema, message, false);
    }
    if (rc != EXIT_OK) {
        bow_stream_cancel(it->stream);
    }
    return rc;
}

static void show_times(const struct calling *it, uint64_t end_ns)
{
    fprintf(stderr, "%stime:%s %.3f ms", colour_on(stderr, COLOUR_DIM), colour_off(stderr),
            (double)(end_ns - it->begun_ns) / 1e6);
    if (it->first_ns != 0 && it->n_received > 1) {
        fprintf(stderr, ", the first of %zu messages after %.3f ms", it->n_received,
                (double)(it->first_ns - it->begun_ns) / 1e6);
    }
    fputc('\n', stderr);
}

/* Say how it ended. */
static int end(struct calling *it, const struct bow_result *result)
{
    uint64_t end_ns = clock_ns();
    int rc = EXIT_OK;

    if (it->options->verbose) {
        show_metadata("headers", &result->initial);
    }
    if (result->reply != NULL) {
        note_message(it);
        rc = show_message(it->options, it->schema, result->reply, true);
    }
    if (it->options->verbose) {
        show_metadata("trailers", &result->status.metadata);
        show_times(it, end_ns);
    }
    if (it->options->json) {
        show_end(result, end_ns - it->begun_ns);
    }
    if (result->status.code != BOW_OK && atomic_load(&it->send_rc) == EXIT_OK) {
        return it->options->json ? exit_of(result->status.code)
                                 : peer_failed(&it->peer, &result->status);
    }
    return rc;
}

/* Kinds */

static int call_unary(struct calling *it)
{
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    struct bow_result result = BOW_RESULT_INIT;
    ProtobufCMessage *request = NULL;

    int rc = read_request(it, arena, &request);
    if (rc == EXIT_OK) {
        it->begun_ns = clock_ns();
        (void)bow_client_call(it->peer.client, it->method, request, &it->call_options, &result);
        rc = end(it, &result);
    }
    bow_result_fini(&result);
    bow_arena_free(arena);
    return rc;
}

static int open_stream(struct calling *it)
{
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    ProtobufCMessage *request = NULL;
    int rc = EXIT_OK;

    if (!has_flag(it, BOW_METHOD_CLIENT_STREAMING)) {
        rc = read_request(it, arena, &request);
    }
    it->begun_ns = clock_ns();
    int opened = rc == EXIT_OK ? bow_client_open(it->peer.client, it->method, request,
                                                 &it->call_options, NULL, NULL, &it->stream)
                               : 0;
    bow_arena_free(arena);
    if (opened < 0) {
        rc = say_failed(EXIT_USAGE, "the call cannot begin: %s", strerror(-opened));
    }
    return rc;
}

/* Both sides at once, where the client streams, too. */
static int exchange(struct calling *it)
{
    bool sends = has_flag(it, BOW_METHOD_CLIENT_STREAMING);
    pthread_t sender;
    int ends[2];

    if (!sends) {
        return receive_all(it);
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        bow_stream_cancel(it->stream);
        return say_failed(EXIT_FAILED, "%s", strerror(errno));
    }
    it->input.stop_fd = ends[0];
    if (pthread_create(&sender, NULL, send_on_thread, it) != 0) {
        bow_stream_cancel(it->stream);
        return say_failed(EXIT_FAILED, "no thread to send on");
    }
    int rc = receive_all(it);
    close(ends[1]); /* it may wait for a line that nobody writes any more */
    pthread_join(sender, NULL);
    close(ends[0]);
    return rc;
}

static int call_stream(struct calling *it)
{
    struct bow_result result = BOW_RESULT_INIT;

    int rc = open_stream(it);
    if (rc != EXIT_OK) {
        return rc;
    }
    if (has_flag(it, BOW_METHOD_SERVER_STREAMING)) {
        rc = exchange(it);
    } else {
        atomic_store(&it->send_rc, send_all(it));
    }
    (void)bow_stream_finish(it->stream, &result);
    int ended = end(it, &result);
    bow_result_fini(&result);
    if (atomic_load(&it->send_rc) != EXIT_OK) {
        return atomic_load(&it->send_rc);
    }
    return rc != EXIT_OK ? rc : ended;
}

static void show_method(const struct calling *it)
{
    fprintf(stderr, "%smethod:%s %s(%s%s) returns (%s%s)\n", colour_on(stderr, COLOUR_DIM),
            colour_off(stderr), it->method->path + 1,
            has_flag(it, BOW_METHOD_CLIENT_STREAMING) ? "stream " : "", it->method->input->name,
            has_flag(it, BOW_METHOD_SERVER_STREAMING) ? "stream " : "", it->method->output->name);
}

static int call(struct calling *it)
{
    const struct options *options = it->options;

    int rc = headers_read(options, &it->headers);
    if (rc == EXIT_OK) {
        rc = input_open(&it->input, options->n_args > 2 ? options->args[2] : NULL);
    }
    if (rc == EXIT_OK) {
        rc = source_method(&it->peer, options, options->args[1], &it->schema, &it->method);
    }
    if (rc != EXIT_OK) {
        return rc;
    }
    if (has_flag(it, BOW_METHOD_CLIENT_STREAMING) && options->n_args < 3) {
        input_from_stdin(&it->input);
    }
    it->call_options = (struct bow_call_options)BOW_CALL_OPTIONS_INIT;
    it->call_options.metadata = &it->headers.metadata;
    it->call_options.timeout_ns = options->deadline_ns;
    if (options->verbose) {
        show_method(it);
    }
    return has_flag(it, BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING) ? call_stream(it)
                                                                                   : call_unary(it);
}

int command_call(const struct options *options)
{
    struct calling it = {.options = options};

    int rc = peer_open(&it.peer, options, options->args[0]);
    if (rc == EXIT_OK) {
        rc = call(&it);
    }
    peer_close(&it.peer);
    bow_schema_free(it.schema);
    input_close(&it.input);
    headers_free(&it.headers);
    return rc;
}
