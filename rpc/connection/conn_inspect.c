/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a connection is found doing. */
#include "rpc/connection/conn_inspect.h"
#include "transport/channel/channel_core.h"

static const char *state_of(const struct bow__conn *conn)
{
    if (conn->session == NULL) {
        return conn->inactive ? "closing" : "opening";
    }
    return conn->closing ? "closing" : conn->age.is_leaving ? "leaving" : "open";
}

struct bow__connection_entry *bow__conn_inspect(const struct bow__conn *conn, uint32_t n_calls,
                                                struct bow__snapshot *snapshot)
{
    struct bow__connection_entry *entry = bow__snapshot_add_connection(snapshot);

    if (entry == NULL) {
        return NULL;
    }
    bow__snapshot_copy(entry->peer, bow_channel_peer(conn->channel));
    bow__snapshot_copy(entry->listening, conn->listening);
    entry->secure = conn->security != NULL;
    entry->state = state_of(conn);
    entry->is_blocked = bow__channel_stalled_since(conn->channel) != 0;
    entry->is_paused = conn->paused;
    entry->n_calls = n_calls;
    entry->quiet_ns = conn->age.quiet_ns;
    if (conn->session != NULL) {
        entry->protocol = conn->session->ops->name;
        entry->n_waiting = conn->session->ops->unsent(conn->session);
        entry->rtt_ns = conn->session->rtt_ns;
    }
    return entry;
}
