/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What it plays; see the header. */

#include "soak_hostile.h"
#include "bombs.h"
#include "floods.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define N_PEERS 60u
#define HOLD_MS 2000
#define STALL_MS 30000
/* 4 MiB that decode to 32. */
#define N_NUMBERS 4190000u
#define N_BOMBS 400u

enum bomb_kind { ZSTD_BAD, ZSTD_GOOD, GZIP_BAD, GZIP_GOOD, N_BOMB_KINDS };

static struct bomb bombs[N_BOMB_KINDS];
static struct hostile_bytes unit;
static struct hostile peers[N_PEERS];
static uint16_t port;
static bool may_be_away;
static uint32_t n_unended;

static bool come(struct hostile *peer, bool http2)
{
    if (!hostile_try_connect(peer, port)) {
        assert_true(may_be_away);
        return false;
    }
    unit.n = 0;
    http2 ? hostile_http2_opening(&unit) : hostile_native_opening(&unit);
    return true;
}

/* Connections end at any time where a server is restarted. */
static void expect_ended(const struct hostile *peer)
{
    n_unended += !peer->closed && !may_be_away;
}

/* F22 */

static void play_flood(const struct flood *flood)
{
    struct hostile peer;

    if (!come(&peer, flood->http2)) {
        return;
    }
    for (uint32_t i = 0; i < flood->n && !peer.closed; i++) {
        flood->put(&unit, i);
        if (unit.n >= 16384 || i + 1 == flood->n) {
            (void)hostile_send(&peer, &unit, STALL_MS);
            unit.n = 0;
        }
    }
    if (flood->reason != NULL) {
        (void)hostile_read(&peer, STALL_MS);
        expect_ended(&peer);
    }
    hostile_close(&peer);
}

/* Messages that expand (F34): what comes of them within a time */

static void throw_bombs(enum bomb_kind kind)
{
    struct hostile peer;

    if (!come(&peer, bombs[kind].http2)) {
        return;
    }
    for (uint32_t i = 0; i < N_BOMBS && !peer.closed; i++) {
        bomb_put(&bombs[kind], &unit, 2 * i + 1);
        if (!hostile_send(&peer, &unit, HOLD_MS)) {
            break;
        }
        unit.n = 0;
    }
    (void)hostile_read(&peer, HOLD_MS);
    hostile_close(&peer);
}

static void throw_zstd_bad(void)
{
    throw_bombs(ZSTD_BAD);
}

static void throw_zstd_good(void)
{
    throw_bombs(ZSTD_GOOD);
}

static void throw_gzip_bad(void)
{
    throw_bombs(GZIP_BAD);
}

static void throw_gzip_good(void)
{
    throw_bombs(GZIP_GOOD);
}

/* Replies that wait (F38), and those that nobody reads (F42) */

static void put_ask(bool http2, uint32_t stream, const char *path, const char *message)
{
    size_t n = strlen(message);

    if (!http2) {
        hostile_native_request(&unit, stream, path, message, n);
        return;
    }
    hostile_http2_request(&unit, stream, path);
    hostile_http2_header(&unit, (uint32_t)(5 + n), 0, 1, stream);
    hostile_put_u8(&unit, 0);
    hostile_put_u32(&unit, (uint32_t)n);
    hostile_put(&unit, message, n);
}

/* As many replies as that; what comes is read, but no credit is given for it. */
static void ask_without_credit(bool http2)
{
    struct hostile peer;

    if (!come(&peer, http2)) {
        return;
    }
    for (uint32_t i = 0; i < 300 && !peer.closed; i++) {
        put_ask(http2, 2 * i + 1, "/lab.Lab/Echo", "\x18\x80\x95\x13"); /* 314,000 bytes */
        (void)hostile_send(&peer, &unit, HOLD_MS);
        unit.n = 0;
    }
    (void)hostile_read(&peer, HOLD_MS);
    hostile_close(&peer);
}

static void let_wait_native(void)
{
    ask_without_credit(false);
}

static void let_wait_http2(void)
{
    ask_without_credit(true);
}

/* Half of them of each protocol. */
static void read_nothing(void)
{
    unsigned n = 0;

    while (n < N_PEERS && come(&peers[n], n % 2 != 0)) {
        peers[n].never_reads = true;
        for (uint32_t k = 0; k < 64; k++) {
            put_ask(n % 2 != 0, 2 * k + 1, "/lab.Lab/Echo", "\x18\x80\x80\x20"); /* 512 KiB */
        }
        (void)hostile_send(&peers[n++], &unit, HOLD_MS);
    }
    (void)poll(NULL, 0, HOLD_MS);
    while (n > 0) {
        hostile_close(&peers[--n]);
    }
}

/* A PING for each call (F41), as estimators of bandwidth send them: nothing that is to be ended. */
static void ping_for_each_call(void)
{
    struct hostile peer;

    if (!come(&peer, true)) {
        return;
    }
    for (uint32_t i = 0; i < 20000 && !peer.closed; i++) {
        put_ask(true, 2 * i + 1, "/lab.Lab/Echo", "\x08\x01");
        hostile_http2_header(&unit, 8, 6, 0, 0);
        hostile_put(&unit, "12345678", 8);
        if (unit.n > 2000) {
            (void)hostile_send(&peer, &unit, STALL_MS);
            unit.n = 0;
        }
    }
    n_unended += peer.closed && !may_be_away;
    hostile_close(&peer);
}

static const struct {
    const char *name;
    void (*play)(void);
} deeds[] = {
    {"zstd, undecodable", throw_zstd_bad},          {"zstd, large", throw_zstd_good},
    {"gzip, undecodable", throw_gzip_bad},          {"gzip, large", throw_gzip_good},
    {"replies that wait, native", let_wait_native}, {"replies that wait, HTTP/2", let_wait_http2},
    {"replies that nobody reads", read_nothing},    {"a PING for each call", ping_for_each_call},
};

#define N_DEEDS ((int)(sizeof(deeds) / sizeof(deeds[0])))

const char *soak_hostile_name(int number)
{
    if (number < 0) {
        return "nothing";
    }
    return number < N_DEEDS ? deeds[number].name : floods[number - N_DEEDS].name;
}

/* The process */

static void play(int number, uint16_t at, bool at_who_may_be_away)
{
    port = at;
    may_be_away = at_who_may_be_away;
    number < N_DEEDS ? deeds[number].play() : play_flood(&floods[number - N_DEEDS]);
}

static void play_round(int from_parent, int to_parent, const uint16_t ports[2], unsigned round)
{
    int n = N_DEEDS + (int)n_floods;
    struct pollfd parent = {.fd = from_parent, .events = POLLIN};

    for (int i = 0; i < n; i++) {
        struct soak_deed_note note = {i, n_unended};
        if (poll(&parent, 1, 0) != 0 ||
            write(to_parent, &note, sizeof(note)) != (ssize_t)sizeof(note)) {
            _exit(0);
        }
        play(i, ports[0], false);
        if (((unsigned)i + round) % 4 == 3) {
            play(i, ports[1], true);
        }
    }
    struct soak_deed_note end = {-1, n_unended};
    if (write(to_parent, &end, sizeof(end)) != (ssize_t)sizeof(end)) {
        _exit(0);
    }
}

static void run(int from_parent, int to_parent, const uint16_t ports[2])
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setpriority(PRIO_PROCESS, 0, 10);
    bomb_make(&bombs[ZSTD_BAD], false, N_NUMBERS, false);
    bomb_make(&bombs[ZSTD_GOOD], false, N_NUMBERS, true);
    bomb_make(&bombs[GZIP_BAD], true, N_NUMBERS, false);
    bomb_make(&bombs[GZIP_GOOD], true, N_NUMBERS, true);
    for (unsigned round = 0;; round++) {
        play_round(from_parent, to_parent, ports, round);
    }
}

void soak_hostile_fork(struct soak_hostile *hostile, const uint16_t ports[2])
{
    int to[2];
    int from[2];

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    hostile->pid = fork();
    assert_true(hostile->pid >= 0);
    if (hostile->pid == 0) {
        close(to[1]);
        close(from[0]);
        run(to[0], from[1], ports);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    assert_int_equal(fcntl(from[0], F_SETFL, O_NONBLOCK), 0);
    hostile->to = to[1];
    hostile->from = from[0];
}

bool soak_hostile_read(const struct soak_hostile *hostile, struct soak_deed_note *ret_note)
{
    ssize_t n = read(hostile->from, ret_note, sizeof(*ret_note));

    if (n == (ssize_t)sizeof(*ret_note)) {
        return true;
    }
    if (n >= 0 || errno != EAGAIN) {
        fail_msg("the hostile process is gone");
    }
    return false;
}

void soak_hostile_end(struct soak_hostile *hostile)
{
    close(hostile->to);
    close(hostile->from);
    assert_int_equal(waitpid(hostile->pid, NULL, 0), hostile->pid);
}
