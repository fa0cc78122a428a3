/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What was gathered of loops, as text or JSON. Knows nothing of how it came. */
#include "rpc/inspect/render.h"
#include "base/clock.h"
#include "base/options.h"

#include <bowline/limits.h>
#include <bowline/loop.h>
#include <string.h>
#include <unistd.h>

int bow__dump_options_read(const struct bow_dump_options *given,
                           struct bow_dump_options *ret_options)
{
    const uint32_t all = BOW_DUMP_LOOPS | BOW_DUMP_CONNECTIONS | BOW_DUMP_CALLS;
    struct bow_dump_options options = BOW_DUMP_OPTIONS_INIT;

    int rc = given != NULL ? bow__options_read(&options, sizeof(options), given) : 0;
    if (rc < 0 || (unsigned)options.format > BOW_DUMP_JSON || (options.parts & ~all) != 0) {
        return -EINVAL;
    }
    options.parts = options.parts != 0 ? options.parts : all;
    options.max_calls = options.max_calls != 0 ? options.max_calls : BOW_LIMIT_DUMP_CALLS;
    options.max_connections =
        options.max_connections != 0 ? options.max_connections : BOW_LIMIT_DUMP_CONNECTIONS;
    options.wait_ns = options.wait_ns != 0 ? options.wait_ns : UINT64_C(1000000000);
    *ret_options = options;
    return 0;
}

static uint64_t since(uint64_t now_ns, uint64_t then_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

struct totals {
    uint64_t n_calls;
    uint64_t n_connections;
    uint64_t n_abandoned;
    uint64_t n_calls_shown;
    uint64_t n_connections_shown;
    uint32_t n_held;
};

static struct totals add_up(const struct bow__gather *gather)
{
    struct totals totals = {0};

    for (uint32_t i = 0; i < gather->n_parts; i++) {
        const struct bow__gather_part *part = &gather->parts[i];
        const struct bow__snapshot *snapshot = &part->snapshot;
        if (!bow__gather_is_taken(part)) {
            totals.n_held += !part->has_ended;
            continue;
        }
        totals.n_calls += snapshot->n_calls_seen;
        totals.n_connections += snapshot->n_connections_seen;
        totals.n_abandoned += snapshot->n_abandoned;
        totals.n_calls_shown += snapshot->n_calls;
        totals.n_connections_shown += snapshot->n_connections;
    }
    return totals;
}

struct loop_facts {
    struct bow_loop_stats stats;
    const char *state;  /* "runs", "held", "ended" */
    const char *holder; /* NULL: not known */
    uint64_t held_ns;   /* by it; else since it was asked */
};

static struct loop_facts facts_of(const struct bow__gather *gather,
                                  const struct bow__gather_part *part)
{
    struct loop_facts facts = {.stats = {.size = sizeof(facts.stats)}, .state = "runs"};
    uint64_t since_ns = 0;

    (void)bow_loop_get_stats(part->loop, &facts.stats);
    if (part->has_ended) {
        facts.state = "ended";
    } else if (!bow__gather_is_taken(part)) {
        facts.state = "held";
        facts.held_ns = gather->waited_ns;
        facts.holder = bow_loop_get_holder(part->loop, &since_ns);
        if (facts.holder != NULL) {
            facts.held_ns = since(bow__loop_read_clock(part->loop), since_ns);
        }
    }
    return facts;
}

/* Text */

static void text_loop(const struct bow__gather *gather, const struct bow__gather_part *part,
                      struct bow__out *out)
{
    struct loop_facts facts = facts_of(gather, part);

    bow__out_printf(out, "loop %s: ", bow__loop_name(part->loop));
    if (strcmp(facts.state, "held") == 0) {
        bow__out_printf(out, "HELD ");
        if (facts.holder != NULL) {
            bow__out_printf(out, "by \"%s\" ", facts.holder);
        }
        bow__out_printf(out, "for ");
        bow__out_seconds(out, facts.held_ns);
        bow__out_printf(out, "%s, what it has is not shown; ",
                        facts.holder != NULL ? "" : " at least");
    } else {
        bow__out_printf(out, "%s, %u connections, %" PRIu64 " calls, ", facts.state,
                        (unsigned)part->snapshot.n_connections_seen, part->snapshot.n_calls_seen);
    }
    bow__out_printf(out,
                    "%" PRIu64 " turns, the longest %" PRIu64 " us, %" PRIu64
                    " tasks wait, timers late by %" PRIu64 " us at most\n",
                    facts.stats.turns, facts.stats.max_turn_ns / 1000u, facts.stats.pending_tasks,
                    facts.stats.max_lag_ns / 1000u);
}

static void text_connection(const struct bow__connection_entry *entry, uint64_t now_ns,
                            struct bow__out *out)
{
    bow__out_printf(out, "connection %s ", entry->listening[0] != '\0' ? "from" : "to");
    bow__out_escaped(out, entry->peer);
    bow__out_printf(
        out, " (%s%s): %s, %u calls, %u replies being sent, %zu bytes wait%s%s, quiet for ",
        entry->protocol != NULL ? entry->protocol : "no protocol yet", entry->secure ? ", TLS" : "",
        entry->state, entry->n_calls, entry->n_sending, entry->n_waiting,
        entry->is_blocked ? ", the socket is full" : "", entry->is_paused ? ", not read from" : "");
    bow__out_seconds(out, since(now_ns, entry->quiet_ns));
    bow__out_printf(out, "\n");
}

static void text_call(const struct bow__call_entry *entry, uint64_t now_ns, bool is_client,
                      struct bow__out *out)
{
    bow__out_printf(out, "call ");
    bow__out_escaped(out, bow__call_entry_method(entry));
    bow__out_printf(out, " %s ", is_client ? "to" : "with");
    bow__out_escaped(out, entry->peer);
    bow__out_printf(out, " (%s): %s", entry->protocol != NULL ? entry->protocol : "-",
                    bow__call_stage_text(entry->stage));
    if (entry->detail[0] != '\0') {
        bow__out_printf(out, " (");
        bow__out_escaped(out, entry->detail);
        bow__out_printf(out, ")");
    }
    bow__out_printf(out, ", for ");
    bow__out_seconds(out, since(now_ns, entry->started_ns));
    if (entry->deadline_ns != BOW_NEVER) {
        bow__out_printf(out, ", ");
        bow__out_seconds(out, since(entry->deadline_ns, now_ns));
        bow__out_printf(out, " left");
    } else {
        bow__out_printf(out, ", no deadline");
    }
    bow__out_printf(out, ", %zu bytes wait\n", entry->n_waiting);
}

static void text_snapshot(const struct bow__snapshot *snapshot, uint32_t parts, bool is_client,
                          struct bow__out *out)
{
    if ((parts & BOW_DUMP_CONNECTIONS) != 0) {
        for (uint32_t i = 0; i < snapshot->n_connections; i++) {
            text_connection(&snapshot->connections[i], snapshot->taken_ns, out);
        }
    }
    if ((parts & BOW_DUMP_CALLS) != 0) {
        for (uint32_t i = 0; i < snapshot->n_calls; i++) {
            text_call(&snapshot->calls[i], snapshot->taken_ns, is_client, out);
        }
    }
}

void bow__render_text(const struct bow__gather *gather, const char *what, uint32_t parts,
                      struct bow__out *out)
{
    struct totals totals = add_up(gather);

    bow__out_printf(out,
                    "%s: %" PRIu64 " calls in flight (%" PRIu64 " shown), %" PRIu64
                    " connections (%" PRIu64 " shown), %u loops (%u held), %" PRIu64
                    " calls with handlers that nobody waits for\n",
                    what, totals.n_calls, totals.n_calls_shown, totals.n_connections,
                    totals.n_connections_shown, gather->n_parts, totals.n_held, totals.n_abandoned);
    for (uint32_t i = 0; i < gather->n_parts; i++) {
        if ((parts & BOW_DUMP_LOOPS) != 0) {
            text_loop(gather, &gather->parts[i], out);
        }
    }
    for (uint32_t i = 0; i < gather->n_parts; i++) {
        if (bow__gather_is_taken(&gather->parts[i])) {
            text_snapshot(&gather->parts[i].snapshot, parts, gather->ops->is_client, out);
        }
    }
}

/* JSON */

static void json_loop(const struct bow__gather *gather, const struct bow__gather_part *part,
                      struct bow__out *out)
{
    struct loop_facts facts = facts_of(gather, part);
    bool is_taken = bow__gather_is_taken(part);

    bow__out_open(out, NULL, '{');
    bow__out_string(out, "name", bow__loop_name(part->loop));
    bow__out_string(out, "state", facts.state);
    bow__out_string(out, "held_by", facts.holder);
    bow__out_number(out, "held_us", facts.held_ns / 1000u);
    if (is_taken) {
        bow__out_number(out, "connections", part->snapshot.n_connections_seen);
        bow__out_number(out, "calls", part->snapshot.n_calls_seen);
    } else {
        bow__out_null(out, "connections");
        bow__out_null(out, "calls");
    }
    bow__out_number(out, "turns", facts.stats.turns);
    bow__out_number(out, "tasks", facts.stats.tasks_run);
    bow__out_number(out, "pending_tasks", facts.stats.pending_tasks);
    bow__out_number(out, "pending_timers", facts.stats.pending_timers);
    bow__out_number(out, "io_us", facts.stats.io_ns / 1000u);
    bow__out_number(out, "task_us", facts.stats.task_ns / 1000u);
    bow__out_number(out, "max_turn_us", facts.stats.max_turn_ns / 1000u);
    bow__out_number(out, "lag_us", facts.stats.lag_ns / 1000u);
    bow__out_number(out, "max_lag_us", facts.stats.max_lag_ns / 1000u);
    bow__out_bool(out, "healthy", bow_loop_is_healthy(part->loop));
    bow__out_close(out, '}');
}

static void json_connection(const struct bow__connection_entry *entry, uint64_t now_ns,
                            struct bow__out *out)
{
    bow__out_open(out, NULL, '{');
    bow__out_string(out, "peer", entry->peer);
    bow__out_string(out, "listening", entry->listening[0] != '\0' ? entry->listening : NULL);
    bow__out_string(out, "protocol", entry->protocol);
    bow__out_bool(out, "secure", entry->secure);
    bow__out_string(out, "state", entry->state);
    bow__out_number(out, "calls", entry->n_calls);
    bow__out_number(out, "replies_being_sent", entry->n_sending);
    bow__out_number(out, "waiting_bytes", entry->n_waiting);
    bow__out_bool(out, "socket_full", entry->is_blocked);
    bow__out_bool(out, "paused", entry->is_paused);
    bow__out_number(out, "quiet_us", since(now_ns, entry->quiet_ns) / 1000u);
    bow__out_number(out, "rtt_us", entry->rtt_ns / 1000u);
    bow__out_close(out, '}');
}

static void json_call(const struct bow__call_entry *entry, uint64_t now_ns, struct bow__out *out)
{
    bow__out_open(out, NULL, '{');
    bow__out_string(out, "method", bow__call_entry_method(entry));
    bow__out_string(out, "peer", entry->peer);
    bow__out_string(out, "protocol", entry->protocol);
    bow__out_string(out, "stage", bow__call_stage_text(entry->stage));
    bow__out_string(out, "detail", entry->detail[0] != '\0' ? entry->detail : NULL);
    bow__out_number(out, "age_us", since(now_ns, entry->started_ns) / 1000u);
    if (entry->deadline_ns != BOW_NEVER) {
        bow__out_number(out, "left_us", since(entry->deadline_ns, now_ns) / 1000u);
    } else {
        bow__out_null(out, "left_us");
    }
    bow__out_number(out, "waiting_bytes", entry->n_waiting);
    bow__out_close(out, '}');
}

static void json_connections(const struct bow__gather *gather, struct bow__out *out)
{
    bow__out_open(out, "connections", '[');
    for (uint32_t i = 0; i < gather->n_parts; i++) {
        const struct bow__snapshot *snapshot = &gather->parts[i].snapshot;
        uint32_t n = bow__gather_is_taken(&gather->parts[i]) ? snapshot->n_connections : 0;
        for (uint32_t at = 0; at < n; at++) {
            json_connection(&snapshot->connections[at], snapshot->taken_ns, out);
        }
    }
    bow__out_close(out, ']');
}

static void json_calls(const struct bow__gather *gather, struct bow__out *out)
{
    bow__out_open(out, "calls", '[');
    for (uint32_t i = 0; i < gather->n_parts; i++) {
        const struct bow__snapshot *snapshot = &gather->parts[i].snapshot;
        uint32_t n = bow__gather_is_taken(&gather->parts[i]) ? snapshot->n_calls : 0;
        for (uint32_t at = 0; at < n; at++) {
            json_call(&snapshot->calls[at], snapshot->taken_ns, out);
        }
    }
    bow__out_close(out, ']');
}

void bow__render_json(const struct bow__gather *gather, uint32_t parts, struct bow__out *out)
{
    struct totals totals = add_up(gather);

    bow__out_number(out, "n_calls", totals.n_calls);
    bow__out_number(out, "n_connections", totals.n_connections);
    bow__out_number(out, "n_abandoned_calls", totals.n_abandoned);
    bow__out_number(out, "n_loops", gather->n_parts);
    bow__out_number(out, "n_held_loops", totals.n_held);
    if ((parts & BOW_DUMP_LOOPS) != 0) {
        bow__out_open(out, "loops", '[');
        for (uint32_t i = 0; i < gather->n_parts; i++) {
            json_loop(gather, &gather->parts[i], out);
        }
        bow__out_close(out, ']');
    }
    if ((parts & BOW_DUMP_CONNECTIONS) != 0) {
        json_connections(gather, out);
    }
    if ((parts & BOW_DUMP_CALLS) != 0) {
        json_calls(gather, out);
    }
}

int bow__render_dump(const struct bow__gather *gather, const char *what,
                     const struct bow_dump_options *options, bow_dump_put_fn put, void *user)
{
    struct bow__out out;

    bow__out_init(&out, put, user);
    if (options->format == BOW_DUMP_TEXT) {
        bow__render_text(gather, what, options->parts, &out);
    } else {
        bow__out_open(&out, NULL, '{');
        bow__render_json(gather, options->parts, &out);
        bow__out_close(&out, '}');
        bow__out_printf(&out, "\n");
    }
    return bow__out_end(&out);
}

int bow__dump_to_fd(const char *text, size_t len, void *user)
{
    const int *fd = user;

    while (len > 0) {
        ssize_t n = write(*fd, text, len);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        n = n < 0 ? 0 : n;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}
