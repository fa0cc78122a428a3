/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that wait to be read. Knows nothing of who reads them.
 */

#include "rpc/core/message/receive_queue.h"

#include <errno.h>

static size_t weight(size_t len)
{
    return sizeof(struct bow__queued_message) + len;
}

int bow__receive_queue_push(struct bow__receive_queue *kept, struct bow_context *context,
                            struct bow__message *message)
{
    size_t n = weight(message->bytes.len);

    if (!bow__in_flight_take_message(kept->part, n)) {
        return -ENOBUFS;
    }
    struct bow__queued_message *held = bow__queued_message_keep(context, message);
    if (held == NULL) {
        bow__in_flight_give_message(kept->part, n);
        return -ENOMEM;
    }
    bow__message_queue_push(&kept->queue, held);
    kept->n_bytes += n;
    return 0;
}

bool bow__receive_queue_pop(struct bow__receive_queue *kept, struct bow__message *ret_message)
{
    struct bow__queued_message *held = bow__message_queue_pop(&kept->queue);

    if (held == NULL) {
        return false;
    }
    size_t n = weight(held->len);
    kept->n_bytes -= n;
    bow__in_flight_give_message(kept->part, n);
    *ret_message = bow__queued_message_release(held);
    return true;
}

void bow__receive_queue_clear(struct bow__receive_queue *kept)
{
    (void)bow__message_queue_clear(&kept->queue);
    bow__in_flight_give_message(kept->part, kept->n_bytes);
    kept->n_bytes = 0;
}

void bow__receive_queue_describe(const struct bow__receive_queue *kept, int rc,
                                 struct bow__text *text)
{
    bow__text_clear(text);
    if (rc == -ENOBUFS) {
        bow__text_printf(text, "no room for a message that has to wait: ");
        bow__in_flight_describe(kept->part->in_flight, text);
        return;
    }
    bow__text_printf(text, "the server has no memory for a message that has to wait");
}
