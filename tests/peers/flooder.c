/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Floods a server in one way, over plain sockets, as fast as it takes that; comes again when it is
 * cut off. Says that it floods, and at its end, after so many seconds or by SIGTERM, what it did:
 *     connections=N cut=N named=N units=N bytes=N heard=N
 * where `cut` are those that the server ended, and `named` those of them with the flood's reason.
 * Usage: flooder --list | --kind=NAME [--seconds=S] PORT
 */

#include "flooder_kinds.h"

#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define STALL_MS 100
#define LAST_WORDS_MS 1000
#define BATCH_BYTES 16384u
#define MAX_AT_ONCE 500u

static struct {
    uint64_t n_connections;
    uint64_t n_cut;
    uint64_t n_named;
    uint64_t n_units;
    uint64_t n_bytes;
    uint64_t n_heard;
} done;

static struct flooder_kind kind;
static uint16_t port;
static uint64_t end_ns;
static volatile sig_atomic_t is_ended;
static struct hostile_bytes batch;

static void on_signal(int number)
{
    (void)number;
    is_ended = 1;
}

static bool is_over(void)
{
    return is_ended != 0 || lab_now_ns() >= end_ns;
}

/* A connection */

static bool come(struct hostile *peer)
{
    batch.n = 0;
    if (!hostile_try_connect(peer, port)) {
        (void)poll(NULL, 0, 1); /* no port is free, or the server is gone */
        return false;
    }
    peer->never_reads = (kind.ways & FLOODER_UNREAD) != 0;
    if ((kind.ways & FLOODER_RAW) == 0) {
        kind.flood.http2 ? hostile_http2_opening(&batch) : hostile_native_opening(&batch);
    }
    if (done.n_connections++ == 0) {
        puts("floods");
        fflush(stdout);
    }
    return true;
}

static bool is_named(const struct hostile *peer)
{
    return kind.flood.reason != NULL &&
           hostile_heard(peer, kind.flood.reason, strlen(kind.flood.reason));
}

/* One that was cut off leaves no TIME_WAIT, or there soon would be no port. */
static void leave(struct hostile *peer)
{
    struct linger hard = {.l_onoff = 1};

    done.n_cut += peer->closed;
    done.n_named += peer->closed && is_named(peer);
    done.n_heard += peer->n_read;
    if (peer->closed || (kind.ways & FLOODER_HARD) != 0) {
        (void)setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    }
    hostile_close(peer);
}

/* False: the server closed, or takes no more. */
static bool send_batch(struct hostile *peer)
{
    size_t n = batch.n;
    bool is_sent = hostile_send(peer, &batch, STALL_MS);

    done.n_bytes += is_sent ? n : 0;
    batch.n = 0;
    return is_sent;
}

static bool send_dripped(struct hostile *peer)
{
    static struct hostile_bytes whole;

    whole = batch;
    for (size_t i = 0; i < whole.n; i++) {
        batch.n = 0;
        hostile_put_u8(&batch, whole.data[i]);
        if (!send_batch(peer) || is_over()) {
            return false;
        }
    }
    return true;
}

/* One connection after the other */

/* A batch went only in part: the connection waits, or the server does not read it any more. */
static void wait_for_cut(struct hostile *peer)
{
    while (!peer->closed && !is_over()) {
        if (peer->never_reads) {
            (void)poll(NULL, 0, STALL_MS);
        } else {
            (void)hostile_read(peer, STALL_MS);
        }
    }
}

static void flood_once(void)
{
    struct hostile peer;
    bool is_sent = true;

    if (!come(&peer)) {
        return;
    }
    for (uint32_t i = 0; i < kind.flood.n && is_sent && !peer.closed && !is_over(); i++) {
        kind.flood.put(&batch, i);
        done.n_units++;
        if ((kind.ways & FLOODER_DRIPPED) != 0) {
            is_sent = send_dripped(&peer);
            batch.n = 0;
            break; /* the next one begins with the opening, too */
        }
        if (batch.n >= BATCH_BYTES || i + 1 == kind.flood.n) {
            is_sent = send_batch(&peer);
        }
    }
    if (!is_sent && !peer.closed) {
        wait_for_cut(&peer);
    } else if (kind.flood.reason != NULL) {
        (void)hostile_read(&peer, LAST_WORDS_MS);
    }
    leave(&peer);
}

/* Many at once */

static struct {
    struct hostile peer;
    size_t at; /* of the unit */
    bool here;
} crowd[MAX_AT_ONCE];

static void say_a_byte(struct hostile *peer, size_t *at)
{
    batch.n = 0;
    kind.flood.put(&batch, 0);
    if (*at >= batch.n) {
        return;
    }
    uint8_t byte = batch.data[(*at)++];
    batch.n = 0;
    hostile_put_u8(&batch, byte);
    (void)send_batch(peer);
}

static void keep_one(size_t i)
{
    if (!crowd[i].here) {
        crowd[i].here = come(&crowd[i].peer);
        crowd[i].at = 0;
        done.n_units += crowd[i].here;
        return;
    }
    if ((kind.ways & FLOODER_DRIPPED) != 0) {
        say_a_byte(&crowd[i].peer, &crowd[i].at);
    }
    if (hostile_read(&crowd[i].peer, 0) || crowd[i].peer.n_read > 100) {
        leave(&crowd[i].peer);
        crowd[i].here = false;
    }
}

static void flood_by_many(void)
{
    while (!is_over()) {
        for (size_t i = 0; i < kind.n_at_once && !is_over(); i++) {
            keep_one(i);
        }
    }
    for (size_t i = 0; i < kind.n_at_once; i++) {
        if (crowd[i].here) {
            leave(&crowd[i].peer);
        }
    }
}

/* The program */

/* "-" is what is put up with. */
static void list_one(const struct flood *flood)
{
    printf("%s\t%s\n", flood->name, flood->reason != NULL ? flood->reason : "-");
}

static void list(void)
{
    for (size_t i = 0; i < n_floods; i++) {
        list_one(&floods[i]);
    }
    for (size_t i = 0; i < n_flooder_kinds; i++) {
        list_one(&flooder_kinds[i].flood);
    }
}

static bool find(const char *name)
{
    for (size_t i = 0; i < n_floods; i++) {
        if (strcmp(floods[i].name, name) == 0) {
            kind.flood = floods[i];
            return true;
        }
    }
    for (size_t i = 0; i < n_flooder_kinds; i++) {
        if (strcmp(flooder_kinds[i].flood.name, name) == 0) {
            kind = flooder_kinds[i];
            return true;
        }
    }
    return false;
}

static bool parse(int argc, char **argv)
{
    static const struct option options[] = {{"list", no_argument, NULL, 'l'},
                                            {"kind", required_argument, NULL, 'k'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {0}};
    double seconds = 1e6;
    bool is_found = false;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'l':
            list();
            exit(0);
        case 'k':
            is_found = find(optarg);
            break;
        case 's':
            seconds = strtod(optarg, NULL);
            break;
        default:
            return false;
        }
    }
    if (!is_found || optind + 1 != argc) {
        return false;
    }
    port = (uint16_t)strtoul(argv[optind], NULL, 10);
    flooder_kind_prepare(&kind);
    end_ns = lab_now_ns() + (uint64_t)(seconds * 1e9);
    return true;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: what waits is woken */

    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: flooder --list | --kind=NAME [--seconds=S] PORT\n");
        return 2;
    }
    (void)sigaction(SIGTERM, &action, NULL);
    if (kind.n_at_once > 0) {
        flood_by_many();
    }
    while (!is_over()) {
        flood_once();
    }
    printf("connections=%" PRIu64 " cut=%" PRIu64 " named=%" PRIu64 " units=%" PRIu64
           " bytes=%" PRIu64 " heard=%" PRIu64 "\n",
           done.n_connections, done.n_cut, done.n_named, done.n_units, done.n_bytes, done.n_heard);
    return 0;
}
