/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Floods and bombs over both protocols (F22, F30): each ends with a GOAWAY that gives
 * a reason and a count, in bounded time and memory, and hurts no neighbour.
 */

#include "floods.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GENEROUS_MS 20000u
/* Far above what a server without the attacker holds, far below what the attackers claim. */
#define MEMORY_BYTES ((size_t)8 << 20)

static struct hostile_bytes unit;

/* GOAWAY is type 8 of one protocol and 7 of the other, on stream 0. */
static bool heard_goaway(const struct hostile *peer, bool http2)
{
    return http2 ? hostile_heard(peer, "\x07\x00\x00\x00\x00\x00", 6)
                 : hostile_heard(peer, "\x08\x00\x00\x00\x00\x00\x00\x00", 8);
}

static size_t attack_with(const struct flood *flood, struct hostile *peer,
                          const struct bow_context *context)
{
    size_t most = 0;

    unit.n = 0;
    flood->http2 ? hostile_http2_opening(&unit) : hostile_native_opening(&unit);
    for (uint32_t i = 0; i < flood->n && !peer->closed; i++) {
        flood->put(&unit, i);
        if (unit.n < 16384 && i + 1 < flood->n) {
            continue;
        }
        if (!hostile_send(peer, &unit, 10000) && !peer->closed) {
            fail_msg("%s: neither taken nor refused", flood->name);
        }
        unit.n = 0;
        size_t now = bow_context_bytes(context);
        most = now > most ? now : most;
    }
    return most;
}

/* Closed with a reason, or put up with. */
static void check_end(const struct flood *flood, struct hostile *peer, const struct lab *lab,
                      uint64_t before)
{
    if (flood->reason == NULL) {
        assert_false(hostile_read(peer, 0));
        return;
    }
    if (!hostile_read(peer, 10000)) {
        fail_msg("%s: the connection was not closed", flood->name);
    }
    if (!heard_goaway(peer, flood->http2) ||
        !hostile_heard(peer, flood->reason, strlen(flood->reason))) {
        fail_msg("%s: no GOAWAY that says '%s'", flood->name, flood->reason);
    }
    hostile_wait_counter(lab, HOSTILE_COUNTER(protocol_errors), before, flood->name);
}

static void survive(const struct lab *lab, const struct flood *flood)
{
    struct hostile peer;
    uint64_t before = hostile_counter(lab, HOSTILE_COUNTER(protocol_errors));
    uint64_t start = lab_now_ns();

    hostile_connect(&peer, lab->port);
    size_t most = attack_with(flood, &peer, lab->context);
    uint64_t ms = (lab_now_ns() - start) / LAB_MS;
    print_message("%s: %zu KiB, %llu ms\n", flood->name, most >> 10, (unsigned long long)ms);
    check_end(flood, &peer, lab, before);
    hostile_close(&peer);
    if (most > MEMORY_BYTES || ms > GENEROUS_MS) {
        fail_msg("%s: took too much", flood->name);
    }
}

static void test_flood_f22_is_ended_with_a_reason_and_hurts_nobody(void **state)
{
    struct lab lab;

    (void)state;
    lab_start(&lab, "");
    struct bow_client *neighbour = hostile_neighbour(&lab, "");
    struct bow_client *other = hostile_neighbour(&lab, "grpc:");
    hostile_neighbour_works(neighbour, "at first");
    for (size_t i = 0; i < n_floods; i++) {
        survive(&lab, &floods[i]);
        hostile_neighbour_works(neighbour, floods[i].name);
        hostile_neighbour_works(other, floods[i].name);
    }
    bow_client_free(neighbour);
    bow_client_free(other);
    lab_stop(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flood_f22_is_ended_with_a_reason_and_hurts_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
