/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The required fields of proto2. A message may come in several pieces that are
 * merged, so what is missing is known only when all has been read. A type with
 * required fields has struct bow__decode_required in front of each of its messages,
 * which keeps over all pieces what was seen; a piece that ends incomplete sets
 * `incomplete`, and only then is the finished tree looked through, once.
 */
#include "rpc/core/codec/decode_required.h"
#include "rpc/core/codec/decode_reason.h"

#define ALIGNMENT 16u

/* proto3 has no required fields, and one field without a label tells proto3. */
static bool find_required(const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (type->fields[i].label == PROTOBUF_C_LABEL_REQUIRED) {
            return true;
        }
        if (type->fields[i].label == PROTOBUF_C_LABEL_NONE) {
            return false;
        }
    }
    return false;
}

size_t bow__decode_required_look(struct bow__decoder *d, const ProtobufCMessageDescriptor *type)
{
    if (!find_required(type)) {
        d->relaxed = type;
        return 0;
    }
    size_t size = sizeof(struct bow__decode_required) + (type->n_fields + 7) / 8;
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static const ProtobufCFieldDescriptor *first_missing(const ProtobufCMessageDescriptor *type,
                                                     const struct bow__decode_required *required)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        bool is_seen = (required->seen[i / 8] & 1u << i % 8) != 0;
        if (type->fields[i].label == PROTOBUF_C_LABEL_REQUIRED && !is_seen) {
            return &type->fields[i];
        }
    }
    return NULL;
}

void bow__decode_note_required(struct bow__decoder *d, ProtobufCMessage *message, const uint8_t *at)
{
    struct bow__decode_required *required =
        message != NULL ? bow__decode_required_of(d, message) : NULL;
    if (required != NULL) {
        required->end = (uint32_t)(at - d->begin);
        d->incomplete |= first_missing(message->descriptor, required) != NULL;
    }
}

static void *member(const struct bow__decode_frame *frame, unsigned offset)
{
    return (char *)frame->message + offset;
}

/* The sub-message `frame->next` of field `frame->guess`, or NULL when there are no more. */
static ProtobufCMessage *sub_message(const struct bow__decode_frame *frame)
{
    const ProtobufCFieldDescriptor *field = frame->guess;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return NULL;
    }
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t n = *(size_t *)member(frame, field->quantifier_offset);
        ProtobufCMessage **array = *(ProtobufCMessage ***)member(frame, field->offset);
        return frame->next < n ? array[frame->next] : NULL;
    }
    bool is_other = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
                    *(uint32_t *)member(frame, field->quantifier_offset) != field->id;
    return frame->next == 0 && !is_other ? *(ProtobufCMessage **)member(frame, field->offset)
                                         : NULL;
}

static void visit(struct bow__decoder *d, ProtobufCMessage *message)
{
    d->top->message = message;
    d->top->guess = message->descriptor->fields;
    d->top->required = bow__decode_required_of(d, message);
    d->top->next = 0;
}

/* Step to the next message of the tree, depth first; false when it was the last. */
static bool visit_next(struct bow__decoder *d)
{
    for (;;) {
        struct bow__decode_frame *frame = d->top;
        const ProtobufCMessageDescriptor *type = frame->message->descriptor;
        for (; frame->guess < type->fields + type->n_fields; frame->guess++, frame->next = 0) {
            ProtobufCMessage *sub = sub_message(frame);
            if (sub != NULL) {
                frame[1].field = frame->guess;
                frame[1].index = frame->next++;
                d->top++;
                visit(d, sub);
                return true;
            }
        }
        if (frame == d->frames) {
            return false;
        }
        d->top--;
    }
}

int bow__decode_check_required(struct bow__decoder *d)
{
    visit(d, d->frames->message);
    do {
        const struct bow__decode_required *required = d->top->required;
        const ProtobufCFieldDescriptor *missing =
            required != NULL ? first_missing(d->top->message->descriptor, required) : NULL;
        if (missing != NULL) {
            bow__decode_refuse(d, missing, d->begin + required->end, "required, and missing");
            return d->error;
        }
    } while (visit_next(d));
    return 0;
}
