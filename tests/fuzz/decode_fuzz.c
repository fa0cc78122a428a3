/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The message decoder and encoder. The first byte chooses the type, the rest are
 * the message; what is decoded must encode and decode again to the same, and agree
 * with protobuf-c.
 */
#include "codec2.pb-c.h"
#include "codec3.pb-c.h"
#include "codec_plain.pb-c.h"
#include "tests/support/codec_oracle.h"
#include "tests/support/group_messages.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
    &codec3__everything__descriptor, &codec3__choice__descriptor,     &codec3__maps__descriptor,
    &codec3__lists__descriptor,      &codec3__tree__descriptor,       &codec2__holder__descriptor,
    &codec2__optional__descriptor,   &codec2__lists__descriptor,      &codec2__map__descriptor,
    &codec2__defaults__descriptor,   &codec_plain__plain__descriptor, &group_node_descriptor,
    &group_needs_descriptor,         &group_pairs_descriptor,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const ProtobufCMessageDescriptor *type = types[data[0] % (sizeof types / sizeof types[0])];
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context;
    if (bow_context_new(&options, &context) != 0) {
        return 0;
    }
    struct bow__arena arena;
    bow__arena_init(&arena, context, NULL, 0, (size_t)1 << 20);
    struct bow__text fault = {0};
    bool agrees = codec_oracle_agrees(type, (struct bow_slice){data + 1, size - 1}, &arena, &fault);
    bow__arena_fini(&arena);
    bow_context_unref(context);
    if (!agrees) {
        fprintf(stderr, "%s\n", fault.bytes);
        abort();
    }
    return 0;
}
