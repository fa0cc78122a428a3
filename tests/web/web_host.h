/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_WEB_WEB_HOST_H
#define BOWLINE_TESTS_WEB_WEB_HOST_H

/*
 * A session of HTTP/1.1 with a host that answers the calls of web.proto at once, each message with
 * its own bytes; "Pour" twice and with a status behind it. Calls of which a message has a byte 'h'
 * in it are held, until web_host_answer(). At "/" is WEB_HOST_PAGE. Aborts when an event comes that
 * must not.
 */

#include "rpc/core/compression/compression.h"
#include "rpc/core/registry.h"
#include "rpc/web/page.h"
#include "rpc/web/web.h"
#include <stdbool.h>

/** What is at "/". */
#define WEB_HOST_PAGE "<p>A page"

#define WEB_HOST_OUT_BYTES ((size_t)256 << 10)

struct web_host {
    struct bow_context *context;
    struct bow__pool pool;
    struct bow__registry registry;
    struct bow__compression compression;
    struct bow__web_page *page;
    struct bow__web web;
    struct bow__session *session;
    uint64_t now_ns;

    uint64_t key; /* of the call that is open; 0: none is */
    uint64_t last_key;
    bool is_pouring;
    bool is_gathering;
    bool is_held;
    unsigned n_opened;
    unsigned n_reset;
    char metadata[256]; /* of the last call, " key=value …", what is no letter or digit as .%u */

    size_t n_out;
    char out[WEB_HOST_OUT_BYTES]; /* all that the session has said, with a NUL; what is more is lost
                                   */
};

/** A session, with times as a server has them by default. */
void web_host_begin(struct web_host *host, struct bow_context *context);
void web_host_end(struct web_host *host);

/** Feed it `bytes` in pieces of `step`, which are copied so that nothing behind them may be read,
 * and what was not taken again with the next; and take out what it says. Returns as feed, with how
 * much was taken in all. */
ssize_t web_host_feed(struct web_host *host, const void *bytes, size_t n, size_t step);
/** Answer the call that is held. */
void web_host_answer(struct web_host *host);
/** Take out what it says. */
void web_host_drain(struct web_host *host);

#endif
