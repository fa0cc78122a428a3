/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Answers into bytes: small pieces are copied, large ones go by reference. */

#include "rpc/http1/output.h"

#include <errno.h>
#include <string.h>

/** Pieces below this are copied: a reference costs an iovec of its own. */
#define COPY_BYTES ((size_t)1 << 10)
/** What frames a chunk, and what a head has beside its fields. */
#define CHUNK_BYTES ((size_t)32)
#define HEAD_BYTES ((size_t)256)
/** All of an answer in words. */
#define PLAIN_BYTES ((size_t)512)

static int append_block(struct bow__http1_output *out, struct bow__block *block, size_t offset,
                        size_t len)
{
    if (len < COPY_BYTES) {
        return bow__outbuf_append(&out->bytes, block->data + offset, len);
    }
    return bow__outbuf_append_block(&out->bytes, block, offset, len);
}

static size_t body_bytes(const struct bow__web_output *output)
{
    return (output->block != NULL ? output->n_prefix + output->len : 0) +
           (output->tail != NULL ? output->n_tail : 0);
}

static size_t head_bytes(const struct bow__web_output *output)
{
    size_t n = HEAD_BYTES;

    for (size_t i = 0; i < output->n_fields; i++) {
        n += output->fields[i].name.len + output->fields[i].value.len + 4;
    }
    return n;
}

static int status_of(const char *text)
{
    return (text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0');
}

static int put_head(struct bow__http1_output *out, const struct bow__web_output *output)
{
    struct bow__http1_writer writer;
    int status = status_of(output->http_status);
    size_t cap = 0;

    uint8_t *room = bow__outbuf_reserve(&out->bytes, head_bytes(output), &cap);
    if (room == NULL) {
        return -ENOMEM;
    }
    bow__http1_writer_init(&writer, room, cap);
    bow__http1_write_status(&writer, status);
    for (size_t i = 0; i < output->n_fields; i++) {
        bow__http1_write_field_slice(&writer, output->fields[i].name, output->fields[i].value);
    }
    out->framing = output->is_last
                       ? bow__http1_end_head(&writer, status, &out->asked, body_bytes(output))
                       : bow__http1_end_head_open(&writer, status, &out->asked);
    bow__outbuf_commit(&out->bytes, writer.error == 0 ? writer.len : 0);
    return writer.error;
}

/* A line of a chunked body, or none of another. */
static int put_framing(struct bow__http1_output *out, size_t n_chunk, bool is_last)
{
    struct bow__http1_writer writer;
    char bytes[CHUNK_BYTES];

    if (out->framing != BOW__HTTP1_SENDS_CHUNKS) {
        return 0;
    }
    bow__http1_writer_init(&writer, bytes, sizeof(bytes));
    if (n_chunk > 0) {
        bow__http1_write_chunk(&writer, n_chunk);
    } else if (is_last) {
        bow__http1_write_last_chunk(&writer);
        bow__http1_write_end(&writer);
    } else {
        bow__http1_write_chunk_end(&writer);
    }
    return bow__outbuf_append(&out->bytes, bytes, writer.len);
}

static int put_body(struct bow__http1_output *out, const struct bow__web_output *output)
{
    size_t n = body_bytes(output);
    int rc = 0;

    if (out->framing != BOW__HTTP1_SENDS_NOTHING && n > 0) {
        rc = put_framing(out, n, false);
        if (rc == 0 && output->block != NULL) {
            rc = bow__outbuf_append(&out->bytes, output->prefix, output->n_prefix);
            rc = rc == 0 ? append_block(out, output->block, output->offset, output->len) : rc;
        }
        if (rc == 0 && output->tail != NULL) {
            rc = append_block(out, output->tail, 0, output->n_tail);
        }
        rc = rc == 0 ? put_framing(out, 0, false) : rc;
    }
    return rc == 0 && output->is_last ? put_framing(out, 0, true) : rc;
}

int bow__http1_output_put(struct bow__http1_output *out, const struct bow__web_output *output)
{
    int rc = output->http_status != NULL ? put_head(out, output) : 0;

    return rc == 0 ? put_body(out, output) : rc;
}

int bow__http1_output_plain(struct bow__http1_output *out, int status, const char *text)
{
    struct bow__http1_asked asked = bow__http1_asked_of_nothing();
    struct bow__http1_writer writer;
    char bytes[PLAIN_BYTES];

    bow__http1_writer_init(&writer, bytes, sizeof(bytes));
    bow__http1_write_status(&writer, status);
    bow__http1_write_field(&writer, "Content-Type", "text/plain; charset=utf-8");
    (void)bow__http1_end_head(&writer, status, &asked, strlen(text) + 1);
    int rc = writer.error;
    rc = rc == 0 ? bow__outbuf_append(&out->bytes, bytes, writer.len) : rc;
    rc = rc == 0 ? bow__outbuf_append(&out->bytes, text, strlen(text)) : rc;
    return rc == 0 ? bow__outbuf_append(&out->bytes, "\n", 1) : rc;
}
