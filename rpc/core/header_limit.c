/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bounds and words of max_header_bytes.
 */

#include "rpc/core/header_limit.h"

int bow__header_limit_check(size_t given, struct bow__text *reason)
{
    if (given == 0 ||
        (given >= BOW_LIMIT_HEADER_BYTES_MIN && given <= BOW_LIMIT_HEADER_BYTES_MAX)) {
        return 0;
    }
    bow__text_clear(reason);
    bow__text_printf(reason,
                     "options.max_header_bytes is %zu; from %zu (BOW_LIMIT_HEADER_BYTES_MIN) to "
                     "%zu (BOW_LIMIT_HEADER_BYTES_MAX) it can be, or 0 for %zu",
                     given, BOW_LIMIT_HEADER_BYTES_MIN, BOW_LIMIT_HEADER_BYTES_MAX,
                     BOW_LIMIT_HEADER_BYTES);
    return -EINVAL;
}

void bow__header_limit_received(struct bow__text *text, bool server, size_t n, size_t max)
{
    bow__text_clear(text);
    bow__text_printf(text,
                     "header of %zu bytes exceeds the %s's max_header_bytes (%zu): raise it there, "
                     "or send less metadata",
                     n, server ? "server" : "client", max);
}

void bow__header_limit_unsent(struct bow__text *text, const struct bow__session *session)
{
    const struct bow__header_excess *excess = &session->excess;

    if (excess->is_value) {
        bow__text_printf(text, "one of its values has %zu bytes, and %s allows %zu",
                         excess->n_bytes, session->ops->name, excess->max_bytes);
        return;
    }
    bow__text_printf(text,
                     "its header of %zu bytes is above the %zu that the %s takes: raise "
                     "max_header_bytes there, or send less metadata",
                     excess->n_bytes, excess->max_bytes, session->server ? "client" : "server");
}
