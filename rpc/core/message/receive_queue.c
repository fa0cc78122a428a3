/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that wait to be read. Knows nothing of who reads them.
 */

#include "rpc/core/message/receive_queue.h"

#include <errno.h>

int bow__receive_queue_push(struct bow__receive_queue *pending, struct bow_context *context,
                            struct bow__message *message)
{
    size_t n = bow__queued_message_memory_for(message);

    if (!bow__in_flight_take_message(pending->share, n)) {
        return -ENOBUFS;
    }
    struct bow__queued_message *queued = bow__queued_message_keep(context, message);
    if (queued == NULL) {
        bow__in_flight_give_message(pending->share, n);
        return -ENOMEM;
    }
    bow__message_queue_push(&pending->queue, queued);
    pending->n_bytes += n;
    return 0;
}

bool bow__receive_queue_pop(struct bow__receive_queue *pending, struct bow__message *ret_message)
{
    struct bow__queued_message *queued = bow__message_queue_pop(&pending->queue);

    if (queued == NULL) {
        return false;
    }
    size_t n = bow__queued_message_memory(queued);
    pending->n_bytes -= n;
    bow__in_flight_give_message(pending->share, n);
    *ret_message = bow__queued_message_release(queued);
    return true;
}

void bow__receive_queue_clear(struct bow__receive_queue *pending)
{
    (void)bow__message_queue_clear(&pending->queue);
    bow__in_flight_give_message(pending->share, pending->n_bytes);
    pending->n_bytes = 0;
}

void bow__receive_queue_describe(const struct bow__receive_queue *pending, int rc,
                                 struct bow__text *text)
{
    bow__text_clear(text);
    if (rc == -ENOBUFS) {
        bow__text_printf(text, "no room for a message that has to wait: ");
        bow__in_flight_describe(pending->share->in_flight, text);
        return;
    }
    bow__text_printf(text, "the server has no memory for a message that has to wait");
}
