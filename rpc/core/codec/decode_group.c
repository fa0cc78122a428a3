/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Groups that the descriptor has. Their frame's bytes end where those of the message around them
 * do, so that whoever reaches that end inside of one has not seen its end tag.
 */
#include "rpc/core/codec/decode_group.h"
#include "rpc/core/codec/decode_message.h"
#include "rpc/core/codec/decode_reason.h"
#include <bowline/service.h>

static bool is_group(const struct bow__decode_frame *frame)
{
    return frame->field != NULL && (frame->field->flags & BOW_DESCRIPTOR_GROUP) != 0;
}

const uint8_t *bow__decode_end_group(struct bow__decoder *d, uint32_t number, const uint8_t *at)
{
    if (!is_group(d->top) || d->top->field->id != number) {
        return bow__decode_refuse_number(d, number, at, "end of a group that did not begin");
    }
    at = bow__decode_complete(d, at);
    if (at != NULL) {
        d->top--;
    }
    return at;
}

const uint8_t *bow__decode_leave(struct bow__decoder *d, const uint8_t *at)
{
    if (is_group(d->top)) {
        return bow__decode_refuse(d, NULL, at, "cut off before the group's end");
    }
    return bow__decode_complete(d, at);
}
