/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A message that is encoded once, and its compressed forms. Knows neither who sends it nor how it
 * is compressed.
 */

#include "rpc/core/message/payload.h"
#include "base/alloc.h"
#include "base/refuse.h"
#include "rpc/core/codec/encode.h"

#include <errno.h>

static int refuse(struct bow_context *context, const ProtobufCMessage *message)
{
    struct bow__text reason;

    bow__text_clear(&reason);
    bow__encode_explain(message, &reason);
    return bow__refuse(context, -EINVAL, "bow_payload_new: a %s cannot be encoded: %s",
                       message->descriptor->name, reason.bytes);
}

int bow_payload_new(struct bow_context *context, const ProtobufCMessage *message,
                    struct bow_payload **ret_payload)
{
    size_t size = bow__encoded_size(message);

    if (size == SIZE_MAX) {
        return refuse(context, message);
    }
    struct bow__block *block = bow__block_new_to_fill(context, BOW__PAYLOAD_OFFSET + size);
    if (block == NULL) {
        return -ENOMEM;
    }
    ssize_t n = bow__encode_sized(message, block->data + BOW__PAYLOAD_OFFSET, size, NULL);
    if (n < 0) {
        bow__block_unref(block);
        return refuse(context, message);
    }
    struct bow_payload *payload = (struct bow_payload *)(void *)block->data;
    payload->block = block;
    payload->len = (size_t)n;
    atomic_init(&payload->refs, 1);
    atomic_init(&payload->forms, NULL);
    *ret_payload = payload;
    return 0;
}

struct bow_payload *bow_payload_ref(struct bow_payload *payload)
{
    atomic_fetch_add_explicit(&payload->refs, 1, memory_order_relaxed);
    return payload;
}

static void free_form(struct bow_context *context, struct bow__form *form)
{
    bow__block_unref(form->block);
    bow__free(context, form, sizeof(*form));
}

/* Its blocks live on where a session still sends them. */
static void destroy(struct bow_payload *payload)
{
    struct bow__form *form = atomic_load_explicit(&payload->forms, memory_order_relaxed);

    while (form != NULL) {
        struct bow__form *next = form->next;
        free_form(payload->block->context, form);
        form = next;
    }
    bow__block_unref(payload->block);
}

void bow_payload_unref(struct bow_payload *payload)
{
    if (payload != NULL &&
        atomic_fetch_sub_explicit(&payload->refs, 1, memory_order_acq_rel) == 1) {
        destroy(payload);
    }
}

/* Forms */

static const struct bow__form *find(const struct bow__form *first, enum bow__encoding encoding,
                                    int level)
{
    while (first != NULL && (first->encoding != encoding || first->level != level)) {
        first = first->next;
    }
    return first;
}

const struct bow__form *bow__payload_form(struct bow_payload *payload, enum bow__encoding encoding,
                                          int level)
{
    return find(atomic_load_explicit(&payload->forms, memory_order_acquire), encoding, level);
}

const struct bow__form *bow__payload_add_form(struct bow_payload *payload,
                                              const struct bow__form *form)
{
    struct bow_context *context = payload->block->context;
    struct bow__form *own = bow__alloc(context, sizeof(*own));

    if (own == NULL) {
        bow__block_unref(form->block);
        return NULL;
    }
    *own = *form;
    own->next = atomic_load_explicit(&payload->forms, memory_order_acquire);
    do {
        const struct bow__form *other = find(own->next, own->encoding, own->level);
        if (other != NULL) {
            free_form(context, own);
            return other;
        }
    } while (!atomic_compare_exchange_weak_explicit(&payload->forms, &own->next, own,
                                                    memory_order_release, memory_order_acquire));
    return own;
}
