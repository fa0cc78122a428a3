/* SPDX-License-Identifier: 0BSD */
/* Cuts bytes into lines. It keeps nothing: what it does not consume comes again, with more. */

#include "lines.h"
#include <bowline/channel.h>
#include <errno.h>
#include <string.h>

static size_t refuse(struct bow_handler *handler)
{
    bow_handler_fire_error(handler, -EMSGSIZE);
    bow_handler_close(handler, -EMSGSIZE);
    return 0;
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    const struct lines *lines = (const struct lines *)(const void *)handler;
    size_t done = 0;

    /* The receiver of a line may pause or close: the rest waits then. */
    while (done < bytes->len && bow_handler_can_fire_read(handler)) {
        const uint8_t *start = bytes->data + done;
        const uint8_t *end = memchr(start, '\n', bytes->len - done);
        size_t n = end != NULL ? (size_t)(end - start) + 1 : bytes->len - done;
        if (n > lines->max_bytes) {
            return refuse(handler);
        }
        if (end == NULL) {
            break;
        }
        struct bow_buf line = bow_buf_borrow(start, n);
        bow_handler_fire_read(handler, &line);
        done += n;
    }
    return done;
}

static const struct bow_handler_ops lines_ops = {.name = "lines", .on_read = on_read};

void lines_init(struct lines *lines, size_t max_bytes)
{
    *lines = (struct lines){.handler.ops = &lines_ops, .max_bytes = max_bytes};
}
