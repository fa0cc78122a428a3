/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_DNS_SERVER_H
#define BOWLINE_TESTS_RPC_DNS_SERVER_H

/*
 * A DNS server for tests, over UDP and TCP of one port of 127.0.0.1, on a thread of its own: it
 * says of a name what the test wrote, or nothing. Names that it does not know do not exist.
 */

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define DNS_MAX_RECORDS 16
#define DNS_MAX_NAMES 8

#define DNS_A 1
#define DNS_CNAME 5
#define DNS_AAAA 28
#define DNS_SRV 33

struct dns_record {
    int type;
    uint32_t ttl;
    const char *text;                /* an address, or a name */
    uint16_t priority, weight, port; /* of SRV */
};

struct dns_answer {
    char name[64];
    int rcode;
    bool is_silent;
    bool is_truncated; /* over UDP */
    struct dns_record records[DNS_MAX_RECORDS];
    int n_records;
    int n_asked;
    int n_asked_by_tcp;
};

struct dns_server {
    pthread_t thread;
    pthread_mutex_t lock;
    int udp;
    int tcp;
    int stop[2];
    char address[32]; /* "127.0.0.1:PORT" */
    struct dns_answer answers[DNS_MAX_NAMES];
    int n_answers;
};

void dns_server_start(struct dns_server *server);
void dns_server_stop(struct dns_server *server);

/** What is said of `name` from now on: nothing yet, so that it exists and has no records. The
 * caller alters it between lock and unlock. */
struct dns_answer *dns_server_lock(struct dns_server *server, const char *name);
void dns_server_unlock(struct dns_server *server);
void dns_answer_add(struct dns_answer *answer, int type, uint32_t ttl, const char *text);

/** How often `name` was asked for, by whatever type. */
int dns_server_asked(struct dns_server *server, const char *name);

#endif
