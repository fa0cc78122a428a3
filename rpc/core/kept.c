/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that wait to be read. Knows nothing of who reads them.
 */

#include "rpc/core/kept.h"

#include <errno.h>

static size_t weight(size_t len)
{
    return sizeof(struct bow__held) + len;
}

int bow__kept_push(struct bow__kept *kept, struct bow_context *context,
                   struct bow__message *message)
{
    size_t n = weight(message->bytes.len);

    if (!bow__flight_take_message(kept->part, n)) {
        return -ENOBUFS;
    }
    struct bow__held *held = bow__held_keep(context, message);
    if (held == NULL) {
        bow__flight_give_message(kept->part, n);
        return -ENOMEM;
    }
    bow__held_push(&kept->queue, held);
    kept->n_bytes += n;
    return 0;
}

bool bow__kept_pop(struct bow__kept *kept, struct bow__message *ret_message)
{
    struct bow__held *held = bow__held_pop(&kept->queue);

    if (held == NULL) {
        return false;
    }
    size_t n = weight(held->len);
    kept->n_bytes -= n;
    bow__flight_give_message(kept->part, n);
    *ret_message = bow__held_release(held);
    return true;
}

void bow__kept_clear(struct bow__kept *kept)
{
    (void)bow__held_clear(&kept->queue);
    bow__flight_give_message(kept->part, kept->n_bytes);
    kept->n_bytes = 0;
}

void bow__kept_describe(const struct bow__kept *kept, int rc, struct bow__text *text)
{
    bow__text_clear(text);
    if (rc == -ENOBUFS) {
        bow__text_printf(text, "no room for a message that has to wait: ");
        bow__flight_describe(kept->part->flight, text);
        return;
    }
    bow__text_printf(text, "the server has no memory for a message that has to wait");
}
