/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The BIO and the chunks it writes to. Knows nothing of records. */

#include "tls/bio.h"

#include <assert.h>
#include <string.h>

/* Output */

static bool add_chunk(struct bow__tls_out *out)
{
    struct bow__block *chunk = bow__pool_get(out->pool);

    if (chunk == NULL) {
        return false;
    }
    chunk->next = NULL;
    if (out->last == NULL) {
        out->first = chunk;
        out->start = 0;
    } else {
        out->last->next = chunk;
    }
    out->last = chunk;
    out->end = 0;
    return true;
}

static bool append(struct bow__tls_out *out, const char *bytes, size_t n)
{
    while (n > 0) {
        if ((out->last == NULL || out->end == out->last->cap) && !add_chunk(out)) {
            return false;
        }
        size_t room = out->last->cap - out->end;
        size_t taken = n < room ? n : room;
        memcpy(out->last->data + out->end, bytes, taken);
        out->end += (uint32_t)taken;
        out->len += taken;
        bytes += taken;
        n -= taken;
    }
    return true;
}

static size_t end_of(const struct bow__tls_out *out, const struct bow__block *chunk)
{
    return chunk == out->last ? out->end : chunk->cap;
}

int bow__tls_out_pieces(const struct bow__tls_out *out, struct iovec *pieces, int max)
{
    size_t start = out->start;
    int n = 0;

    for (struct bow__block *chunk = out->first; chunk != NULL && n < max; chunk = chunk->next) {
        pieces[n].iov_base = chunk->data + start;
        pieces[n].iov_len = end_of(out, chunk) - start;
        start = 0;
        n++;
    }
    return n;
}

static void drop_first(struct bow__tls_out *out)
{
    struct bow__block *chunk = out->first;

    out->first = chunk->next;
    out->start = 0;
    if (out->first == NULL) {
        out->last = NULL;
        out->end = 0;
    }
    bow__pool_put(out->pool, chunk);
}

void bow__tls_out_sent(struct bow__tls_out *out, size_t n)
{
    assert(n <= out->len);
    out->len -= n;
    out->n_sent += n;
    while (n > 0) {
        size_t here = end_of(out, out->first) - out->start;
        size_t taken = n < here ? n : here;
        out->start += (uint32_t)taken;
        n -= taken;
        if (taken == here) {
            drop_first(out);
        }
    }
}

void bow__tls_out_fini(struct bow__tls_out *out)
{
    while (out->first != NULL) {
        drop_first(out);
    }
    out->len = 0;
}

/* The BIO */

static int bio_read(BIO *bio, char *into, size_t room, size_t *ret_n)
{
    struct bow__tls_wire *wire = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (wire->in.len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t n = room < wire->in.len ? room : wire->in.len;
    memcpy(into, wire->in.data, n);
    wire->in.data += n;
    wire->in.len -= n;
    wire->n_read += n;
    *ret_n = n;
    return 1;
}

static int bio_write(BIO *bio, const char *bytes, size_t n, size_t *ret_n)
{
    struct bow__tls_wire *wire = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (!append(&wire->out, bytes, n)) {
        wire->out_of_memory = true;
        return -1;
    }
    *ret_n = n;
    return 1;
}

/* Nothing is held back, so flushing is done; what is not known is answered with 0. */
static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD *bow__tls_bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "bowline");

    if (method != NULL) {
        BIO_meth_set_read_ex(method, bio_read);
        BIO_meth_set_write_ex(method, bio_write);
        BIO_meth_set_ctrl(method, bio_ctrl);
    }
    return method;
}

BIO *bow__tls_bio_new(const BIO_METHOD *method, struct bow__tls_wire *wire)
{
    BIO *bio = BIO_new(method);

    if (bio != NULL) {
        BIO_set_data(bio, wire);
        BIO_set_init(bio, 1);
    }
    return bio;
}
