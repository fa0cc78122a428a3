/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How bytes in flight are counted, and when there are too many. Knows nothing of what they are.
 */

#include "rpc/core/flight.h"

static size_t short_bytes(const struct bow__flight *flight)
{
    return flight->max_bytes - flight->max_bytes / 4;
}

static size_t even_bytes(const struct bow__flight *flight)
{
    return short_bytes(flight) / (flight->n_parts > 0 ? flight->n_parts : 1);
}

static void fold(struct bow__flight *flight)
{
    flight->n_bytes -= atomic_exchange(&flight->n_gone, 0);
}

static void turn(struct bow__flight *flight, bool is_short)
{
    flight->is_short = is_short;
    atomic_store(&flight->is_watched, is_short);
    flight->on_turn(flight);
}

/* It ends an eighth below where it begins, so that it is not begun and ended by each message. */
void bow__flight_look(struct bow__flight *flight)
{
    size_t begin = short_bytes(flight);

    fold(flight);
    if (!flight->is_short && flight->n_bytes > begin) {
        turn(flight, true);
        fold(flight);
    }
    if (flight->is_short && flight->n_bytes <= begin - flight->max_bytes / 8) {
        turn(flight, false);
    }
}

void bow__flight_part_init(struct bow__flight_part *part, struct bow__flight *flight)
{
    *part = (struct bow__flight_part){.flight = flight};
    flight->n_parts++;
}

void bow__flight_part_fini(struct bow__flight_part *part)
{
    struct bow__flight *flight = part->flight;

    part->flight = NULL;
    flight->n_parts--;
    flight->n_bytes -= part->n_messages + part->n_calls;
    bow__flight_look(flight);
}

static void add(struct bow__flight *flight, size_t n)
{
    flight->n_bytes += n;
    bow__flight_look(flight);
}

static void subtract(struct bow__flight *flight, size_t n)
{
    flight->n_bytes -= n;
    bow__flight_look(flight);
}

/* With `n` bytes more. */
static bool is_above_even(const struct bow__flight_part *part, size_t n)
{
    size_t even = even_bytes(part->flight);

    return n > even || part->n_messages + part->n_calls > even - n;
}

bool bow__flight_has_room(struct bow__flight_part *part, size_t n)
{
    struct bow__flight *flight = part->flight;
    size_t max = flight->max_bytes;

    fold(flight);
    if (flight->is_short && (n > max / 64 || is_above_even(part, n))) {
        max -= max / 8;
    }
    if (flight->n_bytes > max || n > max - flight->n_bytes) {
        ++*flight->n_refused;
        return false;
    }
    return true;
}

bool bow__flight_take_message(struct bow__flight_part *part, size_t n)
{
    if (part == NULL) {
        return true;
    }
    if (!bow__flight_has_room(part, n)) {
        return false;
    }
    part->n_messages += n;
    add(part->flight, n);
    return true;
}

void bow__flight_give_message(struct bow__flight_part *part, size_t n)
{
    if (part != NULL && part->flight != NULL && n > 0) {
        part->n_messages -= n;
        subtract(part->flight, n);
    }
}

void bow__flight_take_call(struct bow__flight_part *part, size_t n)
{
    part->n_calls += n;
    add(part->flight, n);
}

void bow__flight_give_call(struct bow__flight_part *part, size_t n)
{
    part->n_calls -= n;
    subtract(part->flight, n);
}

void bow__flight_keep(struct bow__flight *flight, size_t n)
{
    add(flight, n);
}

bool bow__flight_let_go(struct bow__flight *flight, size_t n)
{
    atomic_fetch_add(&flight->n_gone, n);
    return atomic_load(&flight->is_watched);
}

bool bow__flight_refuses_call(const struct bow__flight_part *part)
{
    const struct bow__flight *flight = part->flight;

    return flight->is_short && (flight->n_bytes >= flight->max_bytes || is_above_even(part, 0));
}

/* By its messages alone: calls that wait for more of them are no reason to let none through. */
bool bow__flight_is_crowding(const struct bow__flight_part *part)
{
    return part->n_messages > even_bytes(part->flight);
}

void bow__flight_describe(const struct bow__flight *flight, struct bow__text *text)
{
    bool is_shared = flight->max_bytes != flight->server_max_bytes;

    bow__text_printf(text,
                     "%zu bytes of messages and calls are in flight in %sthe server; "
                     "max_bytes_in_flight (%zu)",
                     flight->n_bytes, is_shared ? "a loop of " : "", flight->server_max_bytes);
    if (is_shared) {
        bow__text_printf(text, ", of which %zu are this loop's", flight->max_bytes);
    }
}
