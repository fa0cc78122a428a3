/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Any bytes as a request to protoc-gen-bowline: decoding, model, names, checks and
 * emitters. What comes out must be a response that packs, with files or with an error
 * but not with both.
 */
#include "codegen/plugin.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check(struct memory *memory, const Bowline__Codegen__Response *response)
{
    size_t len = protobuf_c_message_get_packed_size(&response->base);
    uint8_t *bytes = memory_alloc(memory, len);

    expect(protobuf_c_message_pack(&response->base, bytes) == len);
    expect(response->error == NULL || (response->n_file == 0 && *response->error != '\0'));
    expect(response->has_supported_features);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory memory;

    memory_init(&memory);
    const Bowline__Codegen__Response *response =
        plugin_run(&memory, (struct bow_slice){.data = data, .len = size});
    if (response != NULL) {
        check(&memory, response);
    }
    bow__arena_fini(&memory.arena);
    expect(bow_context_bytes(memory.context) == 0);
    memory_fini(&memory);
    return 0;
}
