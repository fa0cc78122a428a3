/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that behave, and beside them on the same loop a client whose requests of few bytes inflate
 * and decode to megabytes, which then prove to be wrong (F34): whatever the protocol, and over TLS,
 * and where handlers run on an executor. The 99th percentile of those calls stays within three
 * times of what it is when they are alone, in the same run.
 *
 *     bomb_test
 */

#include "bombs.h"
#include "misbehaving_child.h"
#include "tests/support/scratch.h"
#include "tests/tls/certs.h"

#include <bowline/call.h>
#include <bowline/executor.h>
#include <bowline/tls.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define N_GOOD 8u
#define N_CALLS 1000u
/* Half of them before, and half after: a machine that others use is not the same all the time. */
#define N_ALONE 10
/* Of which a third or so have part in what comes before the limit. */
#define N_WITH 9
/* 4 MiB that decode to 32. */
#define N_NUMBERS 4190000u

struct kind {
    const char *name;
    bool http2;
    bool tls;      /* for who means harm */
    bool executor; /* handlers run there */
};

static const struct kind *kind; /* of this test; the child's as well */
static struct certs certs;
static char path[96]; /* where who means harm connects */

/* Who means harm: a process */

struct bomber {
    int fd; /* -1: stopped */
    SSL *ssl;
    struct hostile_bytes unit;
    size_t n_sent; /* of the unit */
    uint32_t n_bombs;
};

static struct bomb bomb;
static struct crowd_deeds deeds;

static void leave(struct bomber *bomber)
{
    if (bomber->fd >= 0) {
        SSL_free(bomber->ssl);
        close(bomber->fd);
    }
    bomber->fd = -1;
    bomber->ssl = NULL;
}

static void come(struct bomber *bomber)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, path, sizeof(path));
    bomber->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    child_assert(bomber->fd >= 0);
    child_assert(connect(bomber->fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    if (kind->tls) {
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        child_assert(SSL_CTX_set_alpn_protos(context, (const uint8_t *)"\x02h2", 3) == 0);
        bomber->ssl = SSL_new(context);
        SSL_CTX_free(context);
        child_assert(SSL_set_fd(bomber->ssl, bomber->fd) == 1);
        child_assert(SSL_connect(bomber->ssl) == 1);
    }
    child_assert(fcntl(bomber->fd, F_SETFL, O_NONBLOCK) == 0);
    bomber->unit.n = 0;
    bomber->n_sent = 0;
    bomber->n_bombs = 0;
    kind->http2 ? hostile_http2_opening(&bomber->unit) : hostile_native_opening(&bomber->unit);
    deeds.n_connects++;
}

/* What SSL_read() and SSL_write() say, in the words of read() and write(). */
static ssize_t outcome(const struct bomber *bomber, int rc)
{
    if (rc > 0) {
        return rc;
    }
    int error = SSL_get_error(bomber->ssl, rc);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    return 0;
}

/* False: the connection is over. */
static bool say(struct bomber *bomber)
{
    const uint8_t *at = bomber->unit.data + bomber->n_sent;
    size_t n_left = bomber->unit.n - bomber->n_sent;
    ssize_t n;

    if (n_left == 0) {
        bomber->unit.n = 0;
        bomber->n_sent = 0;
        bomb_put(&bomb, &bomber->unit, 2 * bomber->n_bombs++ + 1);
        return true;
    }
    n = bomber->ssl != NULL ? outcome(bomber, SSL_write(bomber->ssl, at, (int)n_left))
                            : send(bomber->fd, at, n_left, MSG_NOSIGNAL);
    bomber->n_sent += n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && errno == EAGAIN);
}

/* The same. */
static bool hear(struct bomber *bomber)
{
    uint8_t bytes[16384];
    ssize_t n;

    do {
        n = bomber->ssl != NULL ? outcome(bomber, SSL_read(bomber->ssl, bytes, sizeof(bytes)))
                                : recv(bomber->fd, bytes, sizeof(bytes), 0);
    } while (n > 0);
    return n < 0 && errno == EAGAIN;
}

/* Ended, it stays away. */
static void act(struct bomber *bomber)
{
    if (bomber->fd >= 0 && (!say(bomber) || !hear(bomber))) {
        deeds.n_closed++;
        leave(bomber);
    }
}

static void run_bomber(int from_parent, int to_parent, unsigned n)
{
    static struct bomber bomber = {.fd = -1};
    struct pollfd commands = {.fd = from_parent, .events = POLLIN};
    uint16_t port = 0;
    char word = 's';

    (void)n;
    bomb_make(&bomb, kind->http2, N_NUMBERS, false);
    child_assert(child_read(from_parent, &port, sizeof(port)));
    for (;;) {
        if (poll(&commands, 1, word == 'g' ? 1 : -1) == 1) {
            if (!child_read(from_parent, &word, 1)) {
                return;
            }
            leave(&bomber);
            if (word == 'g') {
                come(&bomber);
            }
            child_write(to_parent, &deeds, sizeof(deeds));
        }
        act(&bomber);
    }
}

/* The server */

struct world {
    struct lab lab;
    struct bow_tls_context *tls;
    struct bow_executor *executor;
    struct crowd good;
    struct crowd bad;
    uint64_t alone[N_ALONE];
    uint64_t with[N_WITH];
};

static void echo(struct bow_call *call, const Lab__Blob *request, void *user)
{
    (void)user;
    lab__lab__echo__reply(call, request);
}

static struct bow_security *secure(struct world *world)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_error error;
    char certificate[128];
    char key[128];

    options.side = BOW_TLS_SERVER;
    options.certificate.certificate_file =
        certs_path(&certs, "server.pem", certificate, sizeof(certificate));
    options.certificate.key_file = certs_path(&certs, "server.key", key, sizeof(key));
    if (bow_tls_context_new(world->lab.context, &options, &world->tls, &error) < 0) {
        fail_msg("%s", error.text);
    }
    return bow_tls_security(world->tls);
}

/* All on one loop; who means harm comes by another listener. */
static void start_server(struct world *world)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_listen_options also = BOW_LISTEN_OPTIONS_INIT;
    struct bow_executor_options executor_options = BOW_EXECUTOR_OPTIONS_INIT;
    struct lab__lab__handlers handlers = {.echo = echo};
    char address[112];

    assert_int_equal(bow_context_new(NULL, &world->lab.context), 0);
    options.context = world->lab.context;
    options.listen = "127.0.0.1:0";
    options.workers = 1;
    options.grace_ns = LAB_MS;
    if (kind->executor) {
        assert_int_equal(bow_executor_new(world->lab.context, &executor_options, &world->executor),
                         0);
        options.handlers_on = world->executor;
    }
    assert_int_equal(bow_server_new(&options, &world->lab.server), 0);
    assert_int_equal(lab__lab__serve(world->lab.server, &handlers, NULL), 0);
    snprintf(address, sizeof(address), "unix:%s", path);
    also.address = address;
    also.security = kind->tls ? secure(world) : NULL;
    assert_int_equal(bow_server_listen(world->lab.server, &also), 0);
    if (bow_server_start(world->lab.server) < 0) {
        fail_msg("%s", bow_server_error(world->lab.server));
    }
    world->lab.port = bow_server_port(world->lab.server);
}

static void stop_server(struct world *world)
{
    bow_server_stop(world->lab.server);
    assert_int_equal(bow_server_join(world->lab.server), 0);
    bow_server_free(world->lab.server);
    bow_tls_context_unref(world->tls);
    if (world->executor != NULL) {
        bow_executor_shutdown(world->executor, 0, 0);
        assert_int_equal(bow_executor_join(world->executor, BOW_NEVER), 0);
        bow_executor_unref(world->executor);
    }
    assert_int_equal(bow_context_bytes(world->lab.context), 0);
    bow_context_unref(world->lab.context);
}

/* What is measured */

static uint64_t measure(struct world *world)
{
    struct crowd_report report;

    crowd_measure(&world->good, N_CALLS, &report);
    if (report.n_failed > 0) {
        fail_msg("%lu of %lu calls failed; the last: %s", (unsigned long)report.n_failed,
                 (unsigned long)(report.n_ok + report.n_failed), report.text);
    }
    return report.p99_ns;
}

static void report(const char *name, const uint64_t *p99_ns, size_t n)
{
    print_message("  %s:", name);
    for (size_t i = 0; i < n; i++) {
        print_message(" %llu", (unsigned long long)p99_ns[i] / 1000);
    }
    print_message(" us\n");
}

static void judge(struct world *world, const struct crowd_deeds *bad)
{
    report("alone", world->alone, N_ALONE);
    report("with", world->with, N_WITH);
    uint64_t alone = lab_median(world->alone, N_ALONE);
    uint64_t with = lab_median(world->with, N_WITH);
    print_message("%s: p99 alone %llu us, with %llu us\n", kind->name,
                  (unsigned long long)alone / 1000, (unsigned long long)with / 1000);
    assert_int_equal(bad->n_connects, 1);
    assert_int_equal(bad->n_closed, 1);
    if (!lab_is_instrumented()) {
        assert_true(with <= 3 * alone);
    }
}

static void test_bomb_f34_leaves_others_alone(void **state)
{
    struct world world = {0};
    struct crowd_deeds bad = {0};
    char name[64];

    kind = *state;
    snprintf(name, sizeof(name), "bomb-%d", (int)getpid());
    scratch_path(path, sizeof(path), name);
    crowd_fork_good(&world.good, N_GOOD);
    crowd_fork_with(&world.bad, 1, run_bomber);
    start_server(&world);
    struct crowd_report report;
    crowd_begin(&world.good, world.lab.port);
    crowd_begin(&world.bad, world.lab.port);
    crowd_measure(&world.good, 0, &report);
    for (int i = 0; i < N_ALONE / 2; i++) {
        world.alone[i] = measure(&world);
    }
    crowd_go(&world.bad, &bad);
    for (int i = 0; i < N_WITH; i++) {
        world.with[i] = measure(&world);
    }
    crowd_stop(&world.bad, &bad);
    for (int i = N_ALONE / 2; i < N_ALONE; i++) {
        world.alone[i] = measure(&world);
    }
    uint64_t n_undecodable = hostile_counter(&world.lab, HOSTILE_COUNTER(undecodable_messages));
    assert_in_range(n_undecodable, 1, 10);
    crowd_end(&world.bad);
    crowd_end(&world.good);
    stop_server(&world);
    judge(&world, &bad);
}

static int make_certs(void **state)
{
    (void)state;
    certs_make(&certs);
    return 0;
}

static int remove_certs(void **state)
{
    (void)state;
    certs_remove(&certs);
    return 0;
}

/* What is timed shares this machine's processors with who means harm, and with strangers. */
static void go_before_others(void)
{
    const struct sched_param first = {.sched_priority = 10};

    if (sched_setscheduler(0, SCHED_FIFO, &first) < 0) {
        print_message("without a real-time priority: %s\n", strerror(errno));
    }
}

int main(void)
{
    static struct kind kinds[] = {
        {"native", false, false, false},          {"grpc", true, false, false},
        {"native over TLS", false, true, false},  {"grpc over TLS", true, true, false},
        {"native, executor", false, false, true}, {"grpc, executor", true, false, true},
    };
    struct CMUnitTest tests[sizeof(kinds) / sizeof(kinds[0])];

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        tests[i] = (struct CMUnitTest)cmocka_unit_test_prestate(test_bomb_f34_leaves_others_alone,
                                                                &kinds[i]);
        tests[i].name = kinds[i].name;
    }
    go_before_others();
    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
