/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The world of a cell: its loops, its clock, its server and client; see matrix.h. */

#include "matrix.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Turns in a row in which nothing happens, until nothing more is expected. */
#define QUIET_TURNS 6
/* What is expected comes at once; this is for a machine that does not run us. */
#define PATIENCE_S 20

static uint64_t virtual_now(void *user)
{
    const struct matrix *m = user;

    return m->now_ns;
}

static int count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        n++;
    }
    closedir(folder);
    return n;
}

/* Sides */

static void begin_side(struct matrix *m, struct matrix_side *side)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;

    side->system = *bow_system_default();
    side->system.user = m; /* its functions but ours have no use for it */
    side->system.now_ns = virtual_now;
    options.system = &side->system;
    loop_options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_context_new(&options, &side->context), 0);
    assert_int_equal(bow_loop_new(side->context, &loop_options, &side->loop), 0);
    assert_int_equal(bow_loop_run_once(side->loop, 0), 0);
}

static void end_side(struct matrix_side *side)
{
    bow_tls_context_unref(side->tls);
    bow_loop_unref(side->loop);
    assert_int_equal(bow_context_bytes(side->context), 0);
    bow_context_unref(side->context);
}

static struct bow_security *secure(struct matrix_side *side, const struct certs *certs,
                                   enum bow_tls_side which)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_error error;
    char certificate[128];
    char key[128];
    char ca[128];

    options.side = which;
    if (which == BOW_TLS_SERVER) {
        options.certificate.certificate_file =
            certs_path(certs, "server.pem", certificate, sizeof(certificate));
        options.certificate.key_file = certs_path(certs, "server.key", key, sizeof(key));
    } else {
        options.ca_file = certs_path(certs, "ca.pem", ca, sizeof(ca));
    }
    if (bow_tls_context_new(side->context, &options, &side->tls, &error) < 0) {
        fail_msg("%s", error.text);
    }
    return bow_tls_security(side->tls);
}

/* Server and client */

static void start_server(struct matrix *m, const struct certs *certs)
{
    static int n_servers;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    enum relay_framing framing = m->cell->is_grpc ? RELAY_HTTP2 : RELAY_NATIVE;
    bool is_unix = m->cell->socket == MATRIX_UNIX;
    char address[64];

    snprintf(address, sizeof(address),
             is_unix ? "unix-abstract:bowline-matrix-%d-%d" : "127.0.0.1:0", (int)getpid(),
             n_servers++);
    options.context = m->server_side.context;
    options.loop = m->server_side.loop;
    options.listen = address;
    options.grace_ns = 1;
    options.compression = m->cell->is_packed ? BOW_COMPRESSION_AUTO : BOW_COMPRESSION_OFF;
    if (m->cell->socket == MATRIX_TLS) {
        options.security = secure(&m->server_side, certs, BOW_TLS_SERVER);
        framing = RELAY_TLS;
    }
    assert_int_equal(bow_server_new(&options, &m->server), 0);
    assert_int_equal(bow_server_add_service(m->server, &matrix_service, NULL, 0, 0, m), 0);
    if (bow_server_start(m->server) < 0) {
        fail_msg("%s", bow_server_error(m->server));
    }
    if (!is_unix) {
        snprintf(address, sizeof(address), "127.0.0.1:%u", bow_server_port(m->server));
    }
    relay_start(&m->relay, is_unix, framing, address);
}

static void make_client(struct matrix *m, const struct certs *certs)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error;
    char target[80];

    snprintf(target, sizeof(target), "%s%s", m->cell->is_grpc ? "grpc:" : "", m->relay.address);
    options.context = m->client_side.context;
    options.loop = m->client_side.loop;
    options.target = target;
    options.error = &error;
    options.compression = m->cell->is_packed ? BOW_COMPRESSION_AUTO : BOW_COMPRESSION_OFF;
    if (m->cell->socket == MATRIX_TLS) {
        options.security = secure(&m->client_side, certs, BOW_TLS_CLIENT);
        options.server_name = "server.test";
    }
    if (bow_client_new(&options, &m->client) < 0) {
        fail_msg("%s", error.text);
    }
}

void matrix_begin(struct matrix *m, const struct matrix_cell *cell, const struct certs *certs)
{
    memset(m, 0, sizeof(*m));
    m->cell = cell;
    m->now_ns = 1000 * MATRIX_DEADLINE_NS;
    m->n_fds = count_fds();
    begin_side(m, &m->server_side);
    begin_side(m, &m->client_side);
    start_server(m, certs);
    make_client(m, certs);
}

void matrix_end(struct matrix *m)
{
    matrix_answer_held(m);
    bow_stream_unref(m->called.stream);
    bow_client_free(m->client);
    matrix_settle(m);
    bow_server_stop(m->server);
    for (int i = 0; i < 1000 && bow_server_join(m->server) == -EDEADLK; i++) {
        matrix_settle(m);
        m->now_ns += MATRIX_MS;
    }
    assert_int_equal(bow_server_join(m->server), 0);
    bow_server_free(m->server);
    relay_stop(&m->relay);
    end_side(&m->client_side);
    end_side(&m->server_side);
    assert_int_equal(count_fds(), m->n_fds);
}

/* Turns */

static int n_events(const struct matrix *m)
{
    return m->served.n_entered + m->served.n_messages + m->served.n_half_closes +
           m->served.n_ended + m->called.n_messages + m->called.n_closed;
}

bool matrix_turn(struct matrix *m)
{
    int before = n_events(m);

    assert_int_equal(bow_loop_run_once(m->client_side.loop, 0), 0);
    bool moved = relay_pump(&m->relay);
    assert_int_equal(bow_loop_run_once(m->server_side.loop, 0), 0);
    moved = relay_pump(&m->relay) || moved;
    return moved || n_events(m) != before;
}

void matrix_until(struct matrix *m, const int *counter, int n)
{
    time_t end = time(NULL) + PATIENCE_S;

    while (*counter < n) {
        if (!matrix_turn(m) && time(NULL) > end) {
            fail_msg("%d of %d came", *counter, n);
        }
    }
}

void matrix_settle(struct matrix *m)
{
    for (int quiet = 0; quiet < QUIET_TURNS; quiet++) {
        if (matrix_turn(m)) {
            quiet = 0;
        }
    }
}
