/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What idle connections cost under TLS, each having been used once: our own bytes by the context's
 * count, OpenSSL's by a count of our own, and beside it those of a bare SSL in the same state.
 *
 *     tls_idle_test CONNECTIONS
 */

#include "base/pool.h"
#include "tests/support/crowd.h"
#include "tests/tls/certs.h"
#include "tls/connection.h"
#include "transport/loop/loop.h"

#include <bowline/tls.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A channel, its TLS and the test's handler. */
#define MAX_OWN_BYTES 1024
/* A BIO and callbacks of our own are among what OpenSSL holds. */
#define MAX_DIFFERENCE 128
#define N_BARE 20
#define PREFIX_BYTES 16

static int n_connections = 100;

/* OpenSSL's memory; the servers' alone while `is_server` is set. */

static size_t n_server_bytes;
static bool is_server;

struct prefix {
    size_t size;
    bool is_server;
};

static void *count_alloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    struct prefix *prefix = malloc(PREFIX_BYTES + size);
    if (prefix == NULL) {
        return NULL;
    }
    *prefix = (struct prefix){size, is_server};
    n_server_bytes += is_server ? size : 0;
    return (char *)prefix + PREFIX_BYTES;
}

static void count_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    if (memory == NULL) {
        return;
    }
    struct prefix *prefix = (struct prefix *)(void *)((char *)memory - PREFIX_BYTES);
    n_server_bytes -= prefix->is_server ? prefix->size : 0;
    free(prefix);
}

static void *count_resize(void *memory, size_t size, const char *file, int line)
{
    if (memory == NULL || size == 0) {
        count_free(memory, file, line);
        return size == 0 ? NULL : count_alloc(size, file, line);
    }
    size_t old_size = ((struct prefix *)(void *)((char *)memory - PREFIX_BYTES))->size;
    void *moved = count_alloc(size, file, line);
    if (moved != NULL) {
        memcpy(moved, memory, old_size < size ? old_size : size);
        count_free(memory, file, line);
    }
    return moved;
}

/* A bare pair */

static SSL *make_bare(SSL_CTX *ssl_ctx, int fd)
{
    SSL *ssl = SSL_new(ssl_ctx);

    assert_non_null(ssl);
    SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    assert_int_equal(SSL_set_fd(ssl, fd), 1);
    return ssl;
}

/* One step of each side until both have the other's word. */
static void talk(SSL *client, SSL *server)
{
    char got[CROWD_WORD_BYTES];

    while (SSL_connect(client) != 1 || SSL_write(client, CROWD_WORD, CROWD_WORD_BYTES) <= 0) {
        is_server = true;
        (void)SSL_accept(server);
        is_server = false;
    }
    is_server = true;
    while (SSL_read(server, got, sizeof(got)) <= 0) {
    }
    assert_int_equal(SSL_write(server, got, sizeof(got)), sizeof(got));
    is_server = false;
    while (SSL_read(client, got, sizeof(got)) <= 0) {
    }
}

static size_t measure_bare(const struct certs *certs)
{
    SSL_CTX *contexts[2] = {SSL_CTX_new(TLS_server_method()), SSL_CTX_new(TLS_client_method())};
    SSL *ends[N_BARE + 1][2];
    size_t before = 0;
    char path[128];
    int fds[2];

    SSL_CTX_use_certificate_chain_file(contexts[0],
                                       certs_path(certs, "server.pem", path, sizeof(path)));
    SSL_CTX_use_PrivateKey_file(contexts[0], certs_path(certs, "server.key", path, sizeof(path)),
                                SSL_FILETYPE_PEM);
    for (int i = 0; i <= N_BARE; i++) {
        net_pair(NET_UNIX, fds);
        is_server = true;
        ends[i][0] = make_bare(contexts[0], fds[0]);
        is_server = false;
        ends[i][1] = make_bare(contexts[1], fds[1]);
        talk(ends[i][1], ends[i][0]);
        before = i == 0 ? n_server_bytes : before; /* what all share is there now */
    }
    size_t each = (n_server_bytes - before) / N_BARE;
    for (int i = 0; i <= N_BARE; i++) {
        for (int side = 0; side < 2; side++) {
            close(SSL_get_fd(ends[i][side]));
            SSL_free(ends[i][side]);
        }
    }
    SSL_CTX_free(contexts[0]);
    SSL_CTX_free(contexts[1]);
    return each;
}

/* Ours */

static int add_tls(struct bow_channel *channel, void *user)
{
    struct bow_tls *tls = NULL;

    int rc = bow_tls_new(*(struct bow_tls_context **)user, NULL, &tls);
    if (rc == 0) {
        bow_channel_add_last(channel, bow_tls_handler(tls));
    }
    return rc;
}

/* In the clients' process, which ends without freeing. */
static int greet(int fd, void *user)
{
    static SSL_CTX *ssl_ctx;
    char got[CROWD_WORD_BYTES];
    (void)user;

    ssl_ctx = ssl_ctx != NULL ? ssl_ctx : SSL_CTX_new(TLS_client_method());
    SSL *ssl = ssl_ctx != NULL ? SSL_new(ssl_ctx) : NULL;
    return ssl != NULL && SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1 &&
           SSL_write(ssl, CROWD_WORD, CROWD_WORD_BYTES) == CROWD_WORD_BYTES &&
           SSL_read(ssl, got, sizeof(got)) == CROWD_WORD_BYTES &&
           memcmp(got, CROWD_WORD, sizeof(got)) == 0;
}

static struct bow_tls_context *make_context(struct bow_context *context, const struct certs *certs)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_context *tls_context = NULL;
    char certificate[128];
    char key[128];

    options.certificate.certificate_file =
        certs_path(certs, "server.pem", certificate, sizeof(certificate));
    options.certificate.key_file = certs_path(certs, "server.key", key, sizeof(key));
    assert_int_equal(bow_tls_context_new(context, &options, &tls_context, NULL), 0);
    return tls_context;
}

/* Without the chunks that wait in the loop's pool: how many did at a time, and may go on waiting,
 * is no matter of the connections. */
static size_t bytes_of(const struct crowd *crowd)
{
    const struct bow__pool *pool = bow__loop_pool(crowd->net.loop);

    return bow_context_bytes(crowd->net.t.context) - pool->n_idle * (BOW__CHUNK_BYTES + 64);
}

/* What counts is what is taken, of OpenSSL's as well. */
static void expect_counted(size_t counted, size_t openssl)
{
    size_t taken = counted - BOW__TLS_OPENSSL_BYTES + openssl;

    assert_in_range(counted, taken - taken / 10, taken + taken / 10);
}

static void test_tls_f44_idle_ones_hold_little_beside_openssls_own_and_leave_nothing(void **state)
{
    struct bow_tls_context *tls_context = NULL;
    struct crowd crowd;
    struct certs certs;

    (void)state;
    certs_make(&certs);
    size_t bare = measure_bare(&certs);
    crowd_begin(&crowd, add_tls, greet, &tls_context);
    tls_context = make_context(crowd.net.t.context, &certs);
    is_server = true;
    crowd_come(&crowd, 1); /* what they share is there now */
    size_t own = bytes_of(&crowd);
    size_t openssl = n_server_bytes;
    uint64_t took_ns = crowd_come(&crowd, n_connections);
    own = (bytes_of(&crowd) - own) / (size_t)n_connections;
    openssl = (n_server_bytes - openssl) / (size_t)n_connections;
    is_server = false;
    print_message("%d connections: accepted and answered once, %.0f a second\n", n_connections,
                  n_connections * 1e9 / (double)took_ns);
    expect_counted(own, openssl);
    own -= BOW__TLS_OPENSSL_BYTES;
    print_message("an idle one holds %zu bytes, OpenSSL %zu for it; a bare SSL holds %zu\n", own,
                  openssl, bare);
    assert_int_equal(crowd.n_ended, 0);
    assert_in_range(own, 1, MAX_OWN_BYTES);
    assert_in_range(openssl, 1, bare + MAX_DIFFERENCE);
    bow_tls_context_unref(tls_context);
    crowd_end(&crowd);
    loops_end(&crowd.net.t);
    certs_remove(&certs);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_f44_idle_ones_hold_little_beside_openssls_own_and_leave_nothing),
    };

    if (CRYPTO_set_mem_functions(count_alloc, count_resize, count_free) != 1) {
        return 1;
    }
    if (argc > 1) {
        n_connections = atoi(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
