/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A client and a server without sockets; see the header. */

#include "tests/tls/pair.h"
#include "tests/tls/contexts.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_FILES 16

struct group {
    struct certs certs;
    char paths[N_FILES][128];
    int n_paths;
};

int pair_setup(void **state)
{
    struct group *group = calloc(1, sizeof(*group));

    assert_non_null(group);
    certs_make(&group->certs);
    *state = group;
    return 0;
}

int pair_teardown(void **state)
{
    struct group *group = *state;

    certs_remove(&group->certs);
    free(group);
    return 0;
}

const char *pair_file(void **state, const char *name)
{
    struct group *group = *state;

    for (int i = 0; i < group->n_paths; i++) {
        if (strcmp(strrchr(group->paths[i], '/') + 1, name) == 0) {
            return group->paths[i];
        }
    }
    assert_true(group->n_paths < N_FILES);
    char *path = group->paths[group->n_paths++];
    return certs_path(&group->certs, name, path, sizeof(group->paths[0]));
}

static void on_event(struct probe *probe, const char *event)
{
    struct pair_side *side = probe->user;
    struct bow_tls *tls = bow_tls_of(probe->handler.channel);

    if (strcmp(event, "error") == 0 && tls != NULL) {
        (void)snprintf(side->failure, sizeof(side->failure), "%s", bow_tls_failure(tls));
    }
}

static int on_channel(struct bow_channel *channel, void *user)
{
    struct pair_side *side = user;
    struct bow_tls *tls = NULL;

    if (side->on_channel != NULL) {
        return side->on_channel(channel, side);
    }
    int rc = bow_tls_new(side->context, &side->tls_options, &tls);
    if (rc < 0) {
        return rc;
    }
    bow_channel_add_last(channel, bow_tls_handler(tls));
    bow_channel_add_last(channel, &side->probe.handler);
    return 0;
}

static void begin_side(struct pair *pair, struct pair_side *side, enum bow_tls_side which)
{
    side->pair = pair;
    side->options = (struct bow_tls_context_options)BOW_TLS_CONTEXT_OPTIONS_INIT;
    side->options.side = which;
    side->tls_options = (struct bow_tls_options)BOW_TLS_OPTIONS_INIT;
    side->embedded_options = (struct bow_embedded_options)BOW_EMBEDDED_OPTIONS_INIT;
    side->embedded_options.channel.on_channel = on_channel;
    side->embedded_options.channel.user = side;
}

void pair_begin(struct pair *pair, void **state)
{
    memset(pair, 0, sizeof(*pair));
    loops_begin_real(&pair->t);
    begin_side(pair, &pair->client, BOW_TLS_CLIENT);
    begin_side(pair, &pair->server, BOW_TLS_SERVER);
    pair->server.options.certificate.certificate_file = pair_file(state, "server.pem");
    pair->server.options.certificate.key_file = pair_file(state, "server.key");
    pair->client.options.ca_file = pair_file(state, "ca.pem");
    pair->client.tls_options.server_name = "server.test";
}

static void open_side(struct pair_side *side)
{
    struct pair *pair = side->pair;

    if (side->context == NULL) {
        side->context = contexts_new(pair->t.context, &side->options);
    }
    probe_init(&side->probe, NULL);
    side->probe.keeps = true;
    side->probe.on_event = on_event;
    side->probe.user = side;
    side->failure[0] = '\0';
    side->ends_told = false;
    side->n_sent = 0;
    assert_int_equal(bow_embedded_new(pair->t.context, &side->embedded_options, &side->embedded),
                     0);
}

void pair_open(struct pair *pair)
{
    open_side(&pair->server);
    open_side(&pair->client);
}

static size_t limit(const struct pair *pair, const struct pair_side *from, size_t n)
{
    if (pair->piece_bytes > 0 && n > pair->piece_bytes) {
        n = pair->piece_bytes;
    }
    if (from == &pair->client && pair->cut_after > 0 && n > pair->cut_after - from->n_sent) {
        n = pair->cut_after - from->n_sent;
    }
    return n;
}

static bool carry(struct pair *pair, struct pair_side *from, struct pair_side *to)
{
    struct bow_slice output = bow_embedded_output(from->embedded);
    bool is_cut = from == &pair->client && pair->cut_after > 0 && from->n_sent >= pair->cut_after;
    size_t n = limit(pair, from, output.len);

    if (n > 0) {
        /* A closed channel takes no more; the wire does not care. */
        int rc = bow_embedded_feed(to->embedded, output.data, n);
        assert_true(rc == 0 || rc == -EPIPE);
        bow_embedded_consume(from->embedded, n);
        from->n_sent += n;
        (void)bow_embedded_run(from->embedded);
        return true;
    }
    if (!from->ends_told && (is_cut || bow_embedded_is_ended(from->embedded))) {
        from->ends_told = true;
        (void)bow_embedded_end(to->embedded);
        return true;
    }
    return false;
}

bool pair_carry(struct pair *pair)
{
    bool there = carry(pair, &pair->client, &pair->server);
    bool back = carry(pair, &pair->server, &pair->client);

    return there || back;
}

void pair_run(struct pair *pair)
{
    while (pair_carry(pair)) {
    }
}

static void close_side(struct pair_side *side)
{
    bow_embedded_free(side->embedded);
    side->embedded = NULL;
    probe_fini(&side->probe);
}

void pair_close(struct pair *pair)
{
    close_side(&pair->client);
    close_side(&pair->server);
}

void pair_end(struct pair *pair)
{
    if (pair->client.embedded != NULL) {
        pair_close(pair);
    }
    pair->client.context = bow_tls_context_unref(pair->client.context);
    pair->server.context = bow_tls_context_unref(pair->server.context);
    assert_int_equal(ERR_peek_error(), 0);
    loops_end(&pair->t);
}

struct bow_channel *pair_channel(struct pair_side *side)
{
    return bow_embedded_channel(side->embedded);
}

struct bow_tls *pair_tls(struct pair_side *side)
{
    struct bow_tls *tls = bow_tls_of(pair_channel(side));

    assert_non_null(tls);
    return tls;
}

void pair_write(struct pair_side *side, const void *bytes, size_t len)
{
    struct bow_buf buf = bow_buf_borrow(bytes, len);

    assert_int_equal(
        bow_channel_write_and_flush(pair_channel(side), &buf, probe_done, &side->probe), 0);
    assert_int_equal(bow_embedded_run(side->embedded), 0);
}

void pair_open_well(struct pair *pair)
{
    pair_open(pair);
    pair_run(pair);
    assert_string_equal(pair->client.failure, "");
    assert_string_equal(pair->server.failure, "");
    assert_true(bow_tls_is_open(pair_tls(&pair->client)));
    assert_true(bow_tls_is_open(pair_tls(&pair->server)));
}

void pair_assert_got(struct pair_side *side, const char *text)
{
    assert_int_equal(side->probe.n_bytes, strlen(text));
    assert_memory_equal(side->probe.bytes, text, strlen(text));
    side->probe.n_bytes = 0;
}
