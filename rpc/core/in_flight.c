/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How bytes in flight are counted, and when there are too many. Knows nothing of what they are.
 */

#include "rpc/core/in_flight.h"

static size_t short_bytes(const struct bow__in_flight *in_flight)
{
    return in_flight->max_bytes - in_flight->max_bytes / 4;
}

static size_t even_bytes(const struct bow__in_flight *in_flight)
{
    return short_bytes(in_flight) / (in_flight->n_shares > 0 ? in_flight->n_shares : 1);
}

static void fold(struct bow__in_flight *in_flight)
{
    in_flight->n_bytes -= atomic_exchange(&in_flight->n_gone, 0);
}

static void turn(struct bow__in_flight *in_flight, bool is_short)
{
    in_flight->is_short = is_short;
    atomic_store(&in_flight->is_watched, is_short);
    in_flight->on_turn(in_flight);
}

/* It ends an eighth below where it begins, so that it is not begun and ended by each message. */
void bow__in_flight_look(struct bow__in_flight *in_flight)
{
    size_t begin = short_bytes(in_flight);

    fold(in_flight);
    if (!in_flight->is_short && in_flight->n_bytes > begin) {
        turn(in_flight, true);
        fold(in_flight);
    }
    if (in_flight->is_short && in_flight->n_bytes <= begin - in_flight->max_bytes / 8) {
        turn(in_flight, false);
    }
}

void bow__in_flight_share_init(struct bow__in_flight_share *share, struct bow__in_flight *in_flight)
{
    *share = (struct bow__in_flight_share){.in_flight = in_flight};
    in_flight->n_shares++;
}

void bow__in_flight_share_fini(struct bow__in_flight_share *share)
{
    struct bow__in_flight *in_flight = share->in_flight;

    share->in_flight = NULL;
    in_flight->n_shares--;
    in_flight->n_bytes -= share->n_messages + share->n_calls;
    bow__in_flight_look(in_flight);
}

static void add(struct bow__in_flight *in_flight, size_t n)
{
    in_flight->n_bytes += n;
    bow__in_flight_look(in_flight);
}

static void subtract(struct bow__in_flight *in_flight, size_t n)
{
    in_flight->n_bytes -= n;
    bow__in_flight_look(in_flight);
}

/* With `n` bytes more. */
static bool is_above_even(const struct bow__in_flight_share *share, size_t n)
{
    size_t even = even_bytes(share->in_flight);

    return n > even || share->n_messages + share->n_calls > even - n;
}

bool bow__in_flight_has_room(struct bow__in_flight_share *share, size_t n)
{
    struct bow__in_flight *in_flight = share->in_flight;
    size_t max = in_flight->max_bytes;

    fold(in_flight);
    if (in_flight->is_short && (n > max / 64 || is_above_even(share, n))) {
        max -= max / 8;
    }
    if (in_flight->n_bytes > max || n > max - in_flight->n_bytes) {
        ++*in_flight->n_refused;
        return false;
    }
    return true;
}

bool bow__in_flight_take_message(struct bow__in_flight_share *share, size_t n)
{
    if (share == NULL) {
        return true;
    }
    if (!bow__in_flight_has_room(share, n)) {
        return false;
    }
    share->n_messages += n;
    add(share->in_flight, n);
    return true;
}

void bow__in_flight_give_message(struct bow__in_flight_share *share, size_t n)
{
    if (share != NULL && share->in_flight != NULL && n > 0) {
        share->n_messages -= n;
        subtract(share->in_flight, n);
    }
}

void bow__in_flight_take_call(struct bow__in_flight_share *share, size_t n)
{
    share->n_calls += n;
    add(share->in_flight, n);
}

void bow__in_flight_give_call(struct bow__in_flight_share *share, size_t n)
{
    share->n_calls -= n;
    subtract(share->in_flight, n);
}

void bow__in_flight_keep(struct bow__in_flight *in_flight, size_t n)
{
    add(in_flight, n);
}

bool bow__in_flight_let_go(struct bow__in_flight *in_flight, size_t n)
{
    atomic_fetch_add(&in_flight->n_gone, n);
    return atomic_load(&in_flight->is_watched);
}

bool bow__in_flight_refuses_call(const struct bow__in_flight_share *share)
{
    const struct bow__in_flight *in_flight = share->in_flight;

    return in_flight->is_short &&
           (in_flight->n_bytes >= in_flight->max_bytes || is_above_even(share, 0));
}

/* By its messages alone: calls that wait for more of them are no reason to let none through. */
bool bow__in_flight_is_crowding(const struct bow__in_flight_share *share)
{
    return share->n_messages > even_bytes(share->in_flight);
}

void bow__in_flight_describe(const struct bow__in_flight *in_flight, struct bow__text *text)
{
    bool is_shared = in_flight->max_bytes != in_flight->server_max_bytes;

    bow__text_printf(text,
                     "%zu bytes of messages and calls are in flight in %sthe server; "
                     "max_bytes_in_flight (%zu)",
                     in_flight->n_bytes, is_shared ? "a loop of " : "",
                     in_flight->server_max_bytes);
    if (is_shared) {
        bow__text_printf(text, ", of which %zu are this loop's", in_flight->max_bytes);
    }
}
