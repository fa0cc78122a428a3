/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * protoc-gen-bowline: a request on standard input, a response on standard output.
 */

#include "codegen/plugin.h"

#include <stdio.h>
#include <string.h>

#define FIRST_BYTES ((size_t)65536)

static int complain(const char *what)
{
    fprintf(stderr, "protoc-gen-bowline: %s\n", what);
    return 1;
}

/* Returns false when standard input cannot be read. */
static bool read_request(struct memory *memory, struct bow_slice *ret_request)
{
    size_t cap = FIRST_BYTES;
    size_t len = 0;
    uint8_t *bytes = memory_alloc(memory, cap);

    for (;;) {
        len += fread(bytes + len, 1, cap - len, stdin);
        if (len < cap) {
            break;
        }
        uint8_t *larger = memory_alloc(memory, 2 * cap);
        memcpy(larger, bytes, len);
        bytes = larger;
        cap *= 2;
    }
    *ret_request = (struct bow_slice){.data = bytes, .len = len};
    return ferror(stdin) == 0;
}

static bool write_response(struct memory *memory, const Bowline__Codegen__Response *response)
{
    size_t len = protobuf_c_message_get_packed_size(&response->base);
    uint8_t *bytes = memory_alloc(memory, len);

    protobuf_c_message_pack(&response->base, bytes);
    return fwrite(bytes, 1, len, stdout) == len && fflush(stdout) == 0;
}

static int run(struct memory *memory)
{
    struct bow_slice request;

    if (!read_request(memory, &request)) {
        return complain("cannot read standard input");
    }
    const Bowline__Codegen__Response *response = plugin_run(memory, request);
    if (response == NULL) {
        return complain("standard input holds no CodeGeneratorRequest: this program is run by "
                        "protoc, as in protoc --bowline_out=DIR x.proto");
    }
    return write_response(memory, response) ? 0 : complain("cannot write standard output");
}

int main(int argc, char **argv)
{
    struct memory memory;

    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("protoc-gen-bowline " BOWLINE_VERSION);
        return 0;
    }
    memory_init(&memory);
    int rc = run(&memory);
    memory_fini(&memory);
    return rc;
}
