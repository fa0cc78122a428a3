/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One call of grpc.health.v1.Health's Watch, by the session's own operations, and what is made of
 * its messages and its end. Knows neither calls of the client nor what becomes of the connection.
 */

#include "rpc/client/health_watch.h"
#include "base/clock.h"
#include "base/log.h"
#include "rpc/client/backoff.h"
#include "rpc/client/call/client_call.h"
#include "rpc/client/client_options.h"
#include "rpc/connection/jitter.h"
#include "rpc/core/call/receive.h"
#include "rpc/core/codec/encode.h"
#include <grpc/health/v1/health.bow.h>

#include <errno.h>
#include <string.h>

/* What an answer takes in memory, decoded; and the most it may have, inflated: one that has a few
 * bytes on the wire, and does its work inside the session, is no way to hold the loop. */
#define ANSWER_BYTES 256u
#define MOST_ANSWER_BYTES ((size_t)4096)

static const char *service_of(const struct bow__health_watch *watch)
{
    return watch->config->options.health_service;
}

static uint64_t now_of(const struct bow__health_watch *watch)
{
    return bow_loop_now(watch->conn->loop);
}

/* Beginning */

static int send_request(const struct bow__health_watch *watch, struct bow__session *session,
                        uint64_t key)
{
    Bow__Health__HealthCheckRequest request = BOW__HEALTH__HEALTH_CHECK_REQUEST__INIT;

    request.service = (char *)(uintptr_t)service_of(watch);
    size_t n = bow__encoded_size(&request.base);
    struct bow__block *block = bow__block_new(watch->conn->context, n);
    if (block == NULL) {
        return -ENOMEM;
    }
    ssize_t len = bow__encode_sized(&request.base, block->data, n, NULL);
    int rc =
        len < 0 ? (int)len : session->ops->send(session, key, BOW__SEND_END, block, 0, (size_t)len);
    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc;
}

static int open_call(struct bow__health_watch *watch)
{
    const struct bow_method *method = bow__health__health__watch__method();
    struct bow__session *session = watch->conn->session;
    struct bow__request_head head = {
        .path = {(const uint8_t *)method->path, strlen(method->path)},
        .time_left_ns = BOW_NEVER,
    };
    uint64_t key;

    int rc = session->ops->open(session, &head, watch, &key);
    if (rc < 0) {
        return rc;
    }
    rc = send_request(watch, session, key);
    if (rc < 0) {
        session->ops->abandon(session, key);
        return rc;
    }
    watch->key = key;
    return 0;
}

static void begin_later(struct bow__health_watch *watch)
{
    watch->pause_ns = bow__backoff_next(&watch->config->options, watch->pause_ns);
    uint64_t pause_ns = bow__jittered(watch->conn->context, watch->pause_ns, watch->pause_ns / 5);
    bow_timer_start_at(&watch->timer, bow__time_add(watch->begun_ns, pause_ns));
}

/* Without a stream for it, there will be one; without memory, it is tried again. */
static void begin(struct bow__health_watch *watch)
{
    watch->begun_ns = now_of(watch);
    watch->was_told = false;
    int rc = open_call(watch);
    if (rc == 0) {
        watch->conn->n_own_streams++;
        bow__conn_touch(watch->conn);
    } else if (rc != -EAGAIN && rc != -EPIPE) {
        begin_later(watch);
    }
}

static void on_timer(struct bow_timer *timer, void *user)
{
    (void)timer;
    begin(user);
}

/* Its stream is gone. */
static void leave(struct bow__health_watch *watch)
{
    watch->key = 0;
    watch->conn->n_own_streams--;
}

/* What is told */

static void describe_state(const struct bow__health_watch *watch, int state, struct bow__text *text)
{
    static const char *const names[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};

    bow__text_printf(text, "says that ");
    if (*service_of(watch) == '\0') {
        bow__text_printf(text, "it");
    } else {
        bow__text_printf(text, "service \"%s\"", service_of(watch));
    }
    if (state >= 0 && (size_t)state < sizeof(names) / sizeof(names[0])) {
        bow__text_printf(text, " is %s", names[state]);
    } else {
        bow__text_printf(text, " is in state %d", state);
    }
    bow__text_printf(text, " (grpc.health.v1, options.health_service)");
}

static int open_answer(struct bow__compression *compression, struct bow__message *message,
                       struct bow__text *why)
{
    const size_t of_calls = compression->max_message_bytes;

    compression->max_message_bytes = of_calls < MOST_ANSWER_BYTES ? of_calls : MOST_ANSWER_BYTES;
    int rc = bow__open_message(compression, NULL, message, why);
    compression->max_message_bytes = of_calls;
    if (rc == 0 && message->bytes.len > MOST_ANSWER_BYTES) {
        bow__text_printf(why, "it has %zu bytes, and at most %zu are taken", message->bytes.len,
                         MOST_ANSWER_BYTES);
        return -EBADMSG;
    }
    return rc;
}

static int decode(struct bow__health_watch *watch, struct bow__message *message, int *ret_state,
                  struct bow__text *why)
{
    _Alignas(16) uint8_t memory[ANSWER_BYTES];
    struct bow__arena arena;
    ProtobufCMessage *answer = NULL;
    size_t n_bytes = message->bytes.len;

    bow__arena_init(&arena, watch->conn->context, memory, sizeof(memory), 0);
    int rc = open_answer(&watch->calls->compression.compression, message, why);
    if (rc == 0) {
        rc = bow__decode_message(&bow__health__health_check_response__descriptor, message, &arena,
                                 &answer, why);
    }
    if (rc == 0) {
        *ret_state = (int)((const Bow__Health__HealthCheckResponse *)answer)->status;
    }
    bow__session_worked(watch->conn->session, message, n_bytes, rc);
    bow__arena_fini(&arena);
    return rc;
}

void bow__health_watch_on_message(struct bow__health_watch *watch, struct bow__message *message)
{
    struct bow__session *session = watch->conn->session;
    size_t n_bytes = message->bytes.len;
    struct bow__text why;
    struct bow__text text;
    int state = 0;

    bow__text_clear(&why);
    bow__text_clear(&text);
    int rc = decode(watch, message, &state, &why);
    session->ops->consumed(session, watch->key, bow__consumed_bytes(n_bytes));
    if (rc < 0) {
        bow__text_printf(&text, "answers %s with what cannot be decoded: %s",
                         bow__health__health__watch__method()->path, why.bytes);
    } else {
        describe_state(watch, state, &text);
    }
    watch->was_told = true;
    watch->pause_ns = 0;
    bool serves = rc == 0 && state == BOW__HEALTH__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;
    watch->on_said(watch, serves ? NULL : text.bytes);
}

/* The end */

static void take_for_serving(struct bow__health_watch *watch)
{
    bow__log(watch->conn->context, BOW_LOG_INFO,
             "server %s has no grpc.health.v1.Health, which options.health_service asks for: it "
             "counts as serving",
             bow_channel_peer(watch->conn->channel));
    watch->is_wanted = false;
    watch->on_said(watch, NULL);
}

static void describe_end(const struct bow_status *status, struct bow__text *text)
{
    bow__text_printf(text, "ends %s (options.health_service) before it says anything: %s: %s",
                     bow__health__health__watch__method()->path, bow_code_name(status->code),
                     status->message);
    if (status->code == BOW_UNAUTHENTICATED || status->code == BOW_PERMISSION_DENIED) {
        bow__text_printf(text, " (the call has nothing of the client's interceptors: leave it "
                               "open on the server)");
    }
}

void bow__health_watch_on_status(struct bow__health_watch *watch, const struct bow_status *status)
{
    struct bow__text text;

    leave(watch);
    if (!watch->is_wanted || watch->conn->closing) {
        return;
    }
    if (status->code == BOW_UNIMPLEMENTED) {
        take_for_serving(watch);
        return;
    }
    begin_later(watch);
    if (watch->was_told || status->not_processed) {
        return;
    }
    bow__text_clear(&text);
    describe_end(status, &text);
    watch->on_said(watch, text.bytes);
}

/* Life */

void bow__health_watch_init(struct bow__health_watch *watch, struct bow__conn *conn,
                            struct bow__client_calls *calls,
                            const struct bow__client_config *config, bow__health_said_fn on_said)
{
    watch->conn = conn;
    watch->calls = calls;
    watch->config = config;
    watch->on_said = on_said;
    bow_timer_init(&watch->timer, conn->loop, on_timer, watch);
}

void bow__health_watch_start(struct bow__health_watch *watch)
{
    watch->is_wanted = true;
    begin(watch);
}

void bow__health_watch_resume(struct bow__health_watch *watch)
{
    if (watch->is_wanted && watch->key == 0 && !bow_timer_is_armed(&watch->timer)) {
        begin(watch);
    }
}

void bow__health_watch_stop(struct bow__health_watch *watch)
{
    struct bow__session *session = watch->conn->session;

    watch->is_wanted = false;
    bow_timer_stop(&watch->timer);
    if (watch->key != 0 && session != NULL) {
        session->ops->cancel(session, watch->key, BOW_CANCELLED);
        leave(watch);
        bow__conn_touch(watch->conn);
    }
}
