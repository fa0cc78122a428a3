/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Certificates renewed while connections come and go, in one thread and under load from several. */

#include "tests/support/forks.h"
#include "tests/tls/contexts.h"
#include "tests/tls/pair.h"

#include <bowline/group.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_subject(struct pair *pair, const char *expected)
{
    char subject[64];

    assert_int_equal(bow_tls_peer_subject(pair_tls(&pair->client), subject, sizeof(subject)), 0);
    assert_string_equal(subject, expected);
}

/* A server over files of its own, which the test replaces. */
static void begin_renewable(struct pair *pair, void **state, struct certs *certs,
                            char paths[2][128])
{
    certs_make(certs);
    certs_copy(certs, "server.pem", "now.pem");
    certs_copy(certs, "server.key", "now.key");
    pair_begin(pair, state);
    pair->server.options.certificate.certificate_file =
        certs_path(certs, "now.pem", paths[0], sizeof(paths[0]));
    pair->server.options.certificate.key_file =
        certs_path(certs, "now.key", paths[1], sizeof(paths[1]));
    pair->client.options.ca_file = NULL;
    pair->client.options.trust_anyone = true;
}

static void test_tls_reload_serves_new_files_to_new_connections(void **state)
{
    struct pair pair;
    struct certs certs;
    char paths[2][128];

    begin_renewable(&pair, state, &certs, paths);
    pair_open_well(&pair);
    certs_copy(&certs, "second.pem", "now.pem");
    certs_copy(&certs, "second.key", "now.key");
    assert_int_equal(bow_tls_context_reload(pair.server.context, NULL), 0);
    assert_subject(&pair, "CN=server.test");
    pair_write(&pair.client, "still", 5); /* the old one goes on */
    pair_run(&pair);
    pair_assert_got(&pair.server, "still");
    pair_close(&pair);
    pair_open_well(&pair);
    assert_subject(&pair, "CN=second.test");
    assert_false(bow_tls_is_resumed(pair_tls(&pair.client))); /* its ticket was the old setup's */
    pair_end(&pair);
    certs_remove(&certs);
}

static void test_tls_reload_of_bad_files_changes_nothing(void **state)
{
    struct pair pair;
    struct certs certs;
    struct bow_tls_error error = {0};
    char paths[2][128];

    begin_renewable(&pair, state, &certs, paths);
    pair_open_well(&pair);
    pair_close(&pair);
    certs_copy(&certs, "second.pem", "now.pem"); /* and not its key */
    assert_int_equal(bow_tls_context_reload(pair.server.context, &error), -EINVAL);
    assert_non_null(strstr(error.text, "does not belong to"));
    pair_open_well(&pair);
    assert_subject(&pair, "CN=server.test");
    pair_end(&pair);
    certs_remove(&certs);
}

/* A session skips the verification, so what is trusted now must not be got round with an old one.
 */
static void test_tls_reload_forgets_sessions_of_clients(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair_close(&pair);
    assert_int_equal(bow_tls_context_reload(pair.client.context, NULL), 0);
    pair_open_well(&pair);
    assert_false(bow_tls_is_resumed(pair_tls(&pair.client)));
    /* One that began before and gets its tickets after must not bring them in either. */
    pair_close(&pair);
    pair_open(&pair);
    assert_int_equal(bow_tls_context_reload(pair.client.context, NULL), 0);
    pair_run(&pair);
    pair_close(&pair);
    pair_open_well(&pair);
    assert_false(bow_tls_is_resumed(pair_tls(&pair.client)));
    pair_end(&pair);
}

static void test_tls_swap_takes_other_options_but_not_another_side(void **state)
{
    struct pair pair;
    struct bow_tls_error error = {0};

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair_close(&pair);
    struct bow_tls_context_options options = pair.client.options;
    options.ca_file = pair_file(state, "other_ca.pem");
    assert_int_equal(bow_tls_context_swap(pair.client.context, &options, &error), 0);
    pair_open(&pair);
    pair_run(&pair);
    assert_int_equal(pair.client.probe.last_error, -EKEYREJECTED);
    options.side = BOW_TLS_SERVER;
    assert_int_equal(bow_tls_context_swap(pair.client.context, &options, &error), -EINVAL);
    assert_non_null(strstr(error.text, "side"));
    pair_end(&pair);
}

/* Another thread may have held its lock, or one of OpenSSL's. */
static void test_tls_f60_context_that_was_used_is_refused_in_the_child(void **state)
{
    struct pair pair;
    struct forks forks;
    struct bow_tls_error error = {0};
    struct bow_tls *tls = NULL;

    pair_begin(&pair, state);
    for (int is_used = 0; is_used < 2; is_used++) {
        struct bow_tls_context *context = contexts_new(pair.t.context, &pair.server.options);
        if (is_used) {
            assert_int_equal(bow_tls_new(context, NULL, &tls), 0);
            bow_tls_free(tls);
        }
        forks_begin(&forks, NULL, 0);
        if (forks.pid == 0) {
            const int expected = is_used ? -ECHILD : 0;
            FORKS_EXPECT(bow_tls_new(context, NULL, &tls) == expected);
            FORKS_EXPECT(bow_tls_context_reload(context, &error) == expected);
            FORKS_EXPECT(!is_used || strstr(error.text, "used before fork()") != NULL);
            FORKS_EXPECT(bow_tls_context_swap(context, &pair.server.options, NULL) == expected);
            _exit(0);
        }
        forks_end(&forks);
        assert_int_equal(bow_tls_context_reload(context, NULL), 0);
        bow_tls_context_unref(context);
    }
    pair_end(&pair);
}

/* Under load: two loops of clients, two of servers, and a thread that reloads both contexts. */

#define N_CLIENTS 4
#define N_TALKS 30

struct load {
    struct loops t;
    struct bow_tls_context *contexts[2];
    struct bow_group *servers;
    struct bow_group *clients;
    char target[32];
    atomic_int n_answers;
    atomic_int n_failed;
    atomic_int n_running;
};

struct client {
    struct bow_handler handler;
    struct load *load;
    struct bow_loop *loop;
    int n_left;
    bool is_answered;
};

struct echo {
    struct bow_handler handler;
};

static int dial(void *user);

static size_t echo_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    (void)!bow_channel_write_and_flush(handler->channel, bytes, NULL, NULL);
    return bytes->len;
}

static int add_tls(struct bow_channel *channel, struct bow_tls_context *context)
{
    struct bow_tls_options options = BOW_TLS_OPTIONS_INIT;
    struct bow_tls *tls = NULL;

    options.server_name = "server.test";
    int rc = bow_tls_new(context, &options, &tls);
    if (rc == 0) {
        bow_channel_add_last(channel, bow_tls_handler(tls));
    }
    return rc;
}

static int add_echo(struct bow_channel *channel, void *user)
{
    static const struct bow_handler_ops ops = {.name = "echo", .on_read = echo_read};
    struct load *load = user;
    struct echo *echo = bow_channel_data(channel);

    echo->handler.ops = &ops;
    int rc = add_tls(channel, load->contexts[BOW_TLS_SERVER]);
    bow_channel_add_last(channel, &echo->handler);
    return rc;
}

static void client_active(struct bow_handler *handler)
{
    const struct bow_buf hello = bow_buf_borrow("hello", 5);

    (void)!bow_channel_write_and_flush(handler->channel, &hello, NULL, NULL);
}

static size_t client_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct client *client = (struct client *)(void *)handler;

    if (bytes->len < 5) {
        return 0;
    }
    client->is_answered = true;
    bow_channel_close(handler->channel, 0);
    return bytes->len;
}

static void client_removed(struct bow_handler *handler)
{
    struct client *client = (struct client *)(void *)handler;
    struct load *load = client->load;

    atomic_fetch_add(client->is_answered ? &load->n_answers : &load->n_failed, 1);
    if (--client->n_left == 0 || bow_loop_execute(client->loop, "dial", dial, client) < 0) {
        atomic_fetch_sub(&load->n_running, 1);
    }
}

static int add_client(struct bow_channel *channel, void *user)
{
    static const struct bow_handler_ops ops = {.name = "client",
                                               .on_active = client_active,
                                               .on_read = client_read,
                                               .on_removed = client_removed};
    struct client *client = user;

    client->handler.ops = &ops;
    client->is_answered = false;
    int rc = add_tls(channel, client->load->contexts[BOW_TLS_CLIENT]);
    bow_channel_add_last(channel, &client->handler);
    return rc;
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    (void)user;

    if (channel == NULL && error->error != -ECANCELED) {
        (void)fprintf(stderr, "%s\n", error->text);
    }
}

static int dial(void *user)
{
    struct client *client = user;
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_connect *attempt = NULL;

    options.on_channel = add_client;
    options.user = client;
    return bow_connect_start(client->loop, client->load->target, &options, 10 * FAKE_S,
                             on_connected, client, &attempt, NULL);
}

static struct bow_acceptor *start_server(struct load *load)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;

    options.address = "127.0.0.1:0";
    options.loop = bow_group_get(load->servers, 0);
    options.workers = load->servers;
    options.channel.data_bytes = sizeof(struct echo);
    options.channel.on_channel = add_echo;
    options.channel.user = load;
    assert_int_equal(bow_acceptor_new(load->t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    (void)snprintf(load->target, sizeof(load->target), "127.0.0.1:%u", bow_acceptor_port(acceptor));
    return acceptor;
}

static struct bow_group *new_group(struct load *load)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *group = NULL;

    options.n_loops = 2;
    assert_int_equal(bow_group_new(load->t.context, &options, &group), 0);
    return group;
}

static void stop_group(struct bow_group *group)
{
    bow_group_shutdown(group, 0, 5 * FAKE_S);
    assert_int_equal(bow_group_join(group, 20 * FAKE_S), 0);
    bow_group_unref(group);
}

static void begin_load(struct load *load, void **state)
{
    struct bow_tls_context_options server = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_context_options client = BOW_TLS_CONTEXT_OPTIONS_INIT;

    memset(load, 0, sizeof(*load));
    loops_begin_real(&load->t);
    server.certificate.certificate_file = pair_file(state, "server.pem");
    server.certificate.key_file = pair_file(state, "server.key");
    client.side = BOW_TLS_CLIENT;
    client.ca_file = pair_file(state, "ca.pem");
    assert_int_equal(
        bow_tls_context_new(load->t.context, &server, &load->contexts[BOW_TLS_SERVER], NULL), 0);
    assert_int_equal(
        bow_tls_context_new(load->t.context, &client, &load->contexts[BOW_TLS_CLIENT], NULL), 0);
    load->servers = new_group(load);
    load->clients = new_group(load);
}

static void test_tls_reload_under_load_fails_no_connection(void **state)
{
    struct load load;
    struct client clients[N_CLIENTS];
    int n_reloads = 0;

    begin_load(&load, state);
    struct bow_acceptor *acceptor = start_server(&load);
    atomic_store(&load.n_running, N_CLIENTS);
    for (uint32_t i = 0; i < N_CLIENTS; i++) {
        clients[i] = (struct client){
            .load = &load, .loop = bow_group_get(load.clients, i % 2), .n_left = N_TALKS};
        assert_int_equal(bow_loop_execute(clients[i].loop, "dial", dial, &clients[i]), 0);
    }
    while (atomic_load(&load.n_running) > 0) {
        assert_int_equal(bow_tls_context_reload(load.contexts[n_reloads % 2], NULL), 0);
        n_reloads++;
    }
    assert_true(n_reloads > 10);
    assert_int_equal(atomic_load(&load.n_answers), N_CLIENTS * N_TALKS);
    assert_int_equal(atomic_load(&load.n_failed), 0);
    bow_acceptor_close(acceptor, NULL, NULL);
    stop_group(load.clients);
    stop_group(load.servers);
    bow_tls_context_unref(load.contexts[0]);
    bow_tls_context_unref(load.contexts[1]);
    loops_end(&load.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_reload_serves_new_files_to_new_connections),
        cmocka_unit_test(test_tls_reload_of_bad_files_changes_nothing),
        cmocka_unit_test(test_tls_reload_forgets_sessions_of_clients),
        cmocka_unit_test(test_tls_swap_takes_other_options_but_not_another_side),
        cmocka_unit_test(test_tls_f60_context_that_was_used_is_refused_in_the_child),
        cmocka_unit_test(test_tls_reload_under_load_fails_no_connection),
    };
    return cmocka_run_group_tests(tests, pair_setup, pair_teardown);
}
