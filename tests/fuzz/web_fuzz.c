/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests of Connect and gRPC-Web over HTTP/1.1, as a client may send them. What is fed whole and
 * in pieces of a size that the first byte chooses has to bring the same answers; all memory has to
 * come back.
 */
#include "tests/web/web_host.h"

#include <bowline/context.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct web_host host;

struct run {
    ssize_t rc;
    unsigned n_opened;
    unsigned n_reset;
    size_t n_out;
    char *out;
};

static struct run run(const uint8_t *data, size_t size, size_t step)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct run run = {0};

    if (bow_context_new(&options, &context) < 0) {
        abort();
    }
    web_host_begin(&host, context);
    run.rc = web_host_feed(&host, data, size, step);
    if (run.rc >= 0) {
        web_host_answer(&host);
    }
    run.n_opened = host.n_opened;
    run.n_reset = host.n_reset;
    run.n_out = host.n_out;
    run.out = malloc(host.n_out + 1);
    memcpy(run.out, host.out, host.n_out);
    web_host_end(&host);
    bow_context_unref(context);
    return run;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    size_t step = data[0] % 64 + 1;
    struct run whole = run(data + 1, size - 1, size);
    struct run pieces = run(data + 1, size - 1, step);
    if ((whole.rc < 0) != (pieces.rc < 0) || whole.n_opened != pieces.n_opened ||
        whole.n_out != pieces.n_out || memcmp(whole.out, pieces.out, whole.n_out) != 0) {
        abort();
    }
    free(whole.out);
    free(pieces.out);
    return 0;
}
