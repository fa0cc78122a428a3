/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What each of them does, and what it expects. */

#include "soak_load.h"
#include "lab.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PAUSE_NS (10 * LAB_MS)
#define SHORT_NS (20 * LAB_MS)
/* A call that takes longer is lost. */
#define PATIENCE_NS (UINT64_C(60000) * LAB_MS)
#define N_CHAT 20u
#define N_SLOW 30u
#define SLOW_BYTES (48u << 10)
#define MAX_BYTES (100u << 10)

static const enum soak_deed deeds[SOAK_USERS] = {
    SOAK_CALL,     SOAK_CALL, SOAK_CALL, SOAK_CALL,      SOAK_CANCEL,
    SOAK_DEADLINE, SOAK_CHAT, SOAK_CHAT, SOAK_SLOW_READ,
};

static const char *const deed_names[SOAK_DEEDS] = {
    "call", "cancelled call", "call with a deadline", "chat", "slow reader",
};

static void note_failure(struct soak_user *user, const char *words)
{
    struct soak_load *load = user->client->load;

    pthread_mutex_lock(&load->lock);
    if (atomic_fetch_add(&load->n_failed, 1) == 0) {
        snprintf(load->failure, sizeof(load->failure), "%s, %s: %s", user->client->target,
                 deed_names[user->deed], words);
    }
    pthread_mutex_unlock(&load->lock);
}

static void note_done(struct soak_user *user)
{
    atomic_fetch_add(&user->client->n_done[user->deed], 1);
}

static void note_status(struct soak_user *user, const struct bow_status *status)
{
    char words[400];

    snprintf(words, sizeof(words), "%s: %s", bow_code_name(status->code), status->message);
    note_failure(user, words);
}

/* The next one after a pause; none when all is to end. */
static void go_on(struct soak_user *user)
{
    if (atomic_load(&user->client->load->stopping)) {
        atomic_fetch_sub(&user->client->load->n_running, 1);
        return;
    }
    bow_timer_start(&user->timer, PAUSE_NS);
}

static bool is_right(const Lab__Blob *reply, uint64_t id, size_t n_bytes, uint8_t filling)
{
    if (reply->id != id || reply->body.len != n_bytes) {
        return false;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        if (reply->body.data[i] != filling) {
            return false;
        }
    }
    return true;
}

/* Unary calls */

static void on_reply(struct bow_result *result, const Lab__Blob *reply, void *data)
{
    struct soak_user *user = data;

    if (reply == NULL) {
        note_status(user, &result->status);
    } else if (!is_right(reply, user->id, user->n_bytes, user->id & 0xff)) {
        note_failure(user, "a wrong reply");
    } else {
        note_done(user);
    }
    go_on(user);
}

static void call(struct soak_user *user)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Lab__Blob request = LAB__BLOB__INIT;

    /* Mostly small, some as large as a window. */
    user->n_bytes = user->id % 16 == 0 ? MAX_BYTES : (uint32_t)(user->id % 500) + 1;
    request.id = user->id;
    request.reply_bytes = user->n_bytes;
    options.timeout_ns = PATIENCE_NS;
    if (lab__lab__echo__start(user->client->client, &request, &options, on_reply, user, NULL) < 0) {
        note_failure(user, "it could not be started");
        go_on(user);
    }
}

/* One that is never answered ends as it was given up, and no other way. */
static void on_given_up(struct bow_result *result, const Lab__Blob *reply, void *data)
{
    struct soak_user *user = data;
    enum bow_code wanted = user->deed == SOAK_CANCEL ? BOW_CANCELLED : BOW_DEADLINE_EXCEEDED;

    (void)reply;
    user->call_id = 0;
    if (result->status.code != wanted) {
        note_status(user, &result->status);
    } else {
        note_done(user);
    }
    bow_timer_stop(&user->timer);
    go_on(user);
}

static void give_up(struct soak_user *user)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Lab__Blob request = LAB__BLOB__INIT;
    bool cancels = user->deed == SOAK_CANCEL;

    options.timeout_ns = cancels ? PATIENCE_NS : SHORT_NS;
    if (lab__lab__hang__start(user->client->client, &request, &options, on_given_up, user,
                              &user->call_id) < 0) {
        note_failure(user, "it could not be started");
        go_on(user);
    } else if (cancels) {
        bow_timer_start(&user->timer, user->id % 4 * PAUSE_NS);
    }
}

/* Streams */

static void say(struct soak_user *user, uint64_t id, uint32_t n_bytes)
{
    Lab__Blob message = LAB__BLOB__INIT;

    message.id = id;
    message.reply_bytes = n_bytes;
    if (lab__lab__chat__stream_send(user->stream, &message) < 0) {
        note_failure(user, "it could not be said");
    }
}

static unsigned n_wanted(const struct soak_user *user)
{
    return user->deed == SOAK_CHAT ? N_CHAT : N_SLOW;
}

/* To and fro, a word at a time; or all asked for at once, and heard one at a time. */
static void on_heard(struct lab__lab__chat__stream stream, const Lab__Blob *message, void *data)
{
    struct soak_user *user = data;

    if (!is_right(message, user->n_heard, user->n_bytes, 0)) {
        note_failure(user, "a wrong message");
    }
    if (++user->n_heard == n_wanted(user)) {
        (void)bow_stream_half_close(stream.stream);
        return;
    }
    if (user->deed == SOAK_SLOW_READ) {
        bow_stream_pause(stream.stream);
    }
    bow_timer_start(&user->timer, user->deed == SOAK_SLOW_READ ? 2 * PAUSE_NS : PAUSE_NS);
}

static void on_closed(struct lab__lab__chat__stream stream, struct bow_result *result, void *data)
{
    struct soak_user *user = data;

    (void)stream;
    bow_timer_stop(&user->timer);
    if (result->status.code != BOW_OK) {
        note_status(user, &result->status);
    } else if (user->n_heard != n_wanted(user)) {
        note_failure(user, "messages are lost");
    } else {
        note_done(user);
    }
    bow_stream_unref(user->stream.stream);
    user->stream.stream = NULL;
    go_on(user);
}

static void open_stream(struct soak_user *user)
{
    static const struct lab__lab__chat__stream_events events = {
        .on_message = on_heard,
        .on_closed = on_closed,
    };
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.timeout_ns = 2 * PATIENCE_NS;
    user->n_heard = 0;
    if (lab__lab__chat__open(user->client->client, &options, &events, user, &user->stream) < 0) {
        note_failure(user, "it could not be opened");
        go_on(user);
        return;
    }
    if (user->deed == SOAK_CHAT) {
        user->n_bytes = (uint32_t)(user->id % 900) + 1;
        say(user, 0, user->n_bytes);
        return;
    }
    user->n_bytes = SLOW_BYTES;
    for (unsigned i = 0; i < N_SLOW; i++) {
        say(user, i, SLOW_BYTES);
    }
}

static void go_on_with_stream(struct soak_user *user)
{
    if (user->deed == SOAK_CHAT) {
        say(user, user->n_heard, user->n_bytes);
    } else {
        bow_stream_resume(user->stream.stream);
    }
}

static void on_timer(struct bow_timer *timer, void *data)
{
    struct soak_user *user = data;

    (void)timer;
    if (user->stream.stream != NULL) {
        go_on_with_stream(user);
        return;
    }
    if (user->call_id != 0) {
        bow_client_cancel(user->client->client, user->call_id);
        return;
    }
    user->id++;
    if (user->deed == SOAK_CALL) {
        call(user);
    } else if (user->deed == SOAK_CANCEL || user->deed == SOAK_DEADLINE) {
        give_up(user);
    } else {
        open_stream(user);
    }
}

/* Clients */

static void new_client(struct soak_client *client, struct bow_loop *loop,
                       struct bow_client **ret_client)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error;

    options.target = client->target;
    options.context = client->load->context;
    options.loop = loop;
    options.error = &error;
    if (strncmp(client->target, "tls:", strlen("tls:")) == 0) {
        options.target += strlen("tls:");
        options.security = bow_tls_security(client->load->tls);
        options.server_name = "server.test";
        options.compression = BOW_COMPRESSION_AUTO;
    }
    if (bow_client_new(&options, ret_client) < 0) {
        fail_msg("%s", error.text);
    }
}

static void call_once(struct soak_client *from, uint64_t id)
{
    /* It has no user, so this is one. */
    struct soak_user user = {.client = from, .deed = SOAK_CALL, .id = id};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_client *client = NULL;
    Lab__Blob request = LAB__BLOB__INIT;

    new_client(from, NULL, &client);
    request.id = id;
    request.reply_bytes = (uint32_t)(id % 5000) + 1;
    options.timeout_ns = PATIENCE_NS;
    const Lab__Blob *reply = lab__lab__echo__call(client, &request, &options, &result);
    if (reply == NULL) {
        note_status(&user, &result.status);
    } else if (!is_right(reply, id, request.reply_bytes, id & 0xff)) {
        note_failure(&user, "a wrong reply");
    }
    bow_result_fini(&result);
    bow_client_free(client);
    atomic_fetch_add(&from->load->n_once, 1);
}

static void *come_and_go(void *data)
{
    struct soak_load *load = data;

    for (uint64_t id = 1; !atomic_load(&load->stopping); id++) {
        call_once(&load->clients[id % (unsigned)load->n_clients], id);
    }
    return NULL;
}

static int begin(void *data)
{
    struct soak_load *load = data;

    for (int i = 0; i < load->n_clients; i++) {
        for (int k = 0; k < SOAK_USERS; k++) {
            bow_timer_start(&load->clients[i].users[k].timer, 0);
        }
    }
    return 0;
}

static void trust(struct soak_load *load, const char *ca_file)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_error error;

    options.side = BOW_TLS_CLIENT;
    options.ca_file = ca_file;
    if (bow_tls_context_new(load->context, &options, &load->tls, &error) < 0) {
        fail_msg("%s", error.text);
    }
}

static void init_client(struct soak_load *load, struct soak_client *client, const char *target)
{
    client->load = load;
    client->target = target;
    new_client(client, load->loop, &client->client);
    for (int i = 0; i < SOAK_USERS; i++) {
        struct soak_user *user = &client->users[i];
        user->client = client;
        user->deed = deeds[i];
        user->id = (unsigned)i * 100;
        bow_timer_init(&user->timer, load->loop, on_timer, user);
    }
}

void soak_load_start(struct soak_load *load, const char *const *targets, int n_targets,
                     const char *ca_file)
{
    memset(load, 0, sizeof(*load));
    pthread_mutex_init(&load->lock, NULL);
    assert_true(n_targets <= SOAK_MAX_CLIENTS);
    load->n_clients = n_targets;
    atomic_init(&load->n_running, (unsigned)n_targets * SOAK_USERS);
    assert_int_equal(bow_context_new(NULL, &load->context), 0);
    assert_int_equal(bow_loop_new(load->context, NULL, &load->loop), 0);
    trust(load, ca_file);
    for (int i = 0; i < n_targets; i++) {
        init_client(load, &load->clients[i], targets[i]);
    }
    assert_int_equal(pthread_create(&load->thread, NULL, come_and_go, load), 0);
    assert_int_equal(bow_loop_execute(load->loop, "begin", begin, load), 0);
}

void soak_load_take_stock(struct soak_load *load, unsigned long n_done[SOAK_DEEDS])
{
    if (atomic_load(&load->n_failed) > 0) {
        pthread_mutex_lock(&load->lock);
        fail_msg("%lu calls lost or wrong, the first: %s", atomic_load(&load->n_failed),
                 load->failure);
    }
    for (int deed = 0; deed < SOAK_DEEDS; deed++) {
        n_done[deed] = 0;
        for (int i = 0; i < load->n_clients; i++) {
            n_done[deed] += atomic_load(&load->clients[i].n_done[deed]);
        }
    }
}

unsigned long soak_load_least(const struct soak_load *load, enum soak_deed deed,
                              const char **ret_target)
{
    unsigned long least = 0;

    for (int i = 0; i < load->n_clients; i++) {
        unsigned long n = atomic_load(&load->clients[i].n_done[deed]);
        if (i == 0 || n < least) {
            least = n;
            *ret_target = load->clients[i].target;
        }
    }
    return least;
}

void soak_load_stop(struct soak_load *load)
{
    atomic_store(&load->stopping, true);
    pthread_join(load->thread, NULL);
    while (atomic_load(&load->n_running) > 0) {
        sched_yield();
    }
    for (int i = 0; i < load->n_clients; i++) {
        bow_client_free(load->clients[i].client);
    }
    assert_int_equal(bow_loop_shutdown(load->loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(load->loop, BOW_NEVER), 0);
    bow_loop_unref(load->loop);
    bow_tls_context_unref(load->tls);
    assert_int_equal(bow_context_bytes(load->context), 0);
    bow_context_unref(load->context);
}
