/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From the handlers behind to the wire: what was pushed first, then what they have to be
 * pulled, in records of up to 16 KiB, only as much as the socket is about to take. Small
 * pieces share a record: each costs 22 bytes and a pass through the cipher.
 */

#include "tls/handler.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

#define MAX_PIECES 64
#define MAX_PLAIN_BYTES ((size_t)16384)
/* Encrypted bytes that wait for the socket: about what it takes in one call. */
#define OUT_BYTES ((size_t)64 << 10)

/* Lists of writes */

static void push(struct bow__write_list *list, struct bow__write *write)
{
    write->next = NULL;
    if (list->first == NULL) {
        list->first = write;
    } else {
        list->last->next = write;
    }
    list->last = write;
}

static struct bow__write *pop(struct bow__write_list *list)
{
    struct bow__write *write = list->first;

    if (write != NULL) {
        list->first = write->next;
    }
    return write;
}

/* Queue */

int bow__tls_on_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                      void *user)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);
    int error = -EPIPE;

    if (tls->state == BOW__TLS_FAILED || tls->said_goodbye) {
        return -EPIPE;
    }
    struct bow__write *write = bow__filter_queue(handler->channel, buf, done, user, &error);
    if (write == NULL) {
        return error;
    }
    push(&tls->writes, write);
    tls->n_writes++;
    return 0;
}

void bow__tls_on_flush(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    tls->n_flushed = tls->n_writes;
    bow_handler_flush(handler);
}

void bow__tls_abandon_writes(struct bow_tls *tls, int error)
{
    struct bow_channel *channel = tls->handler.channel;
    struct bow__write *write;

    while ((write = pop(&tls->encrypted)) != NULL) {
        bow__filter_abandon(channel, write, error);
    }
    tls->n_flushed = 0;
    while ((write = pop(&tls->writes)) != NULL) {
        tls->n_writes--;
        bow__filter_taken(channel, write->buf.len);
        bow__filter_abandon(channel, write, error);
    }
}

/* Their last byte has left. */
static void complete_sent(struct bow_tls *tls)
{
    while (tls->encrypted.first != NULL && tls->encrypted.first->end_at <= tls->wire.out.n_sent) {
        bow__filter_complete(tls->handler.channel, pop(&tls->encrypted), 0);
    }
}

/* Records */

/* Plain pieces, of which the first `skip` bytes are done. */
struct plain {
    const struct iovec *pieces;
    int n_pieces;
    size_t skip;
    struct bow__block *scratch; /* where small pieces are put together; NULL until needed */
};

static void advance(struct plain *plain, size_t n)
{
    plain->skip += n;
    while (plain->n_pieces > 0 && plain->skip >= plain->pieces[0].iov_len) {
        plain->skip -= plain->pieces[0].iov_len;
        plain->pieces++;
        plain->n_pieces--;
    }
}

static struct bow_slice first_of(const struct plain *plain)
{
    size_t len = plain->pieces[0].iov_len - plain->skip;

    return (struct bow_slice){(const uint8_t *)plain->pieces[0].iov_base + plain->skip,
                              len < MAX_PLAIN_BYTES ? len : MAX_PLAIN_BYTES};
}

static size_t put_together(struct plain plain, uint8_t *into)
{
    size_t n = 0;

    while (plain.n_pieces > 0 && n < MAX_PLAIN_BYTES) {
        struct bow_slice piece = first_of(&plain);
        size_t room = MAX_PLAIN_BYTES - n;
        size_t taken = piece.len < room ? piece.len : room;
        memcpy(into + n, piece.data, taken);
        n += taken;
        advance(&plain, taken);
    }
    return n;
}

/* The bytes of the next record: where they lie, or put together. */
static struct bow_slice next_record(struct bow_tls *tls, struct plain *plain)
{
    struct bow_slice first = first_of(plain);

    if (first.len == MAX_PLAIN_BYTES || plain->n_pieces == 1) {
        return first;
    }
    if (plain->scratch == NULL) {
        plain->scratch = bow__pool_get(tls->wire.out.pool);
    }
    if (plain->scratch == NULL) {
        return first; /* a record of its own, for want of memory */
    }
    return (struct bow_slice){plain->scratch->data, put_together(*plain, plain->scratch->data)};
}

/* Returns how many bytes of the pieces are encrypted now. */
static size_t encrypt(struct bow_tls *tls, const struct iovec *pieces, int n_pieces)
{
    struct plain plain = {.pieces = pieces, .n_pieces = n_pieces};
    size_t done = 0;
    int rc = 1;

    bow__tls_enter();
    advance(&plain, 0);
    while (plain.n_pieces > 0 && tls->wire.out.len < OUT_BYTES) {
        struct bow_slice record = next_record(tls, &plain);
        size_t n = 0;
        rc = SSL_write_ex(tls->ssl, record.data, record.len, &n);
        if (rc != 1) {
            break;
        }
        advance(&plain, n);
        done += n;
    }
    if (plain.scratch != NULL) {
        bow__pool_put(tls->wire.out.pool, plain.scratch);
    }
    if (rc != 1) {
        (void)bow__tls_look(tls, rc);
        bow__tls_fail_ssl(tls);
    }
    return done;
}

/* What was pushed */

static size_t gather(struct bow_tls *tls, struct iovec *pieces, int *ret_n)
{
    struct bow__write *write = tls->writes.first;
    size_t n_bytes = 0;
    int n = 0;

    for (size_t i = 0; i < tls->n_flushed && n < MAX_PIECES; i++, write = write->next) {
        pieces[n].iov_base = (void *)(uintptr_t)write->buf.data; /* only read */
        pieces[n].iov_len = write->buf.len;
        n_bytes += write->buf.len;
        n++;
    }
    *ret_n = n;
    return n_bytes;
}

/* `n` bytes at the front of the queue are encrypted; writes that have none left wait for
 * theirs to leave. */
static void take(struct bow_tls *tls, size_t n)
{
    bow__filter_taken(tls->handler.channel, n);
    while (tls->n_flushed > 0) {
        struct bow__write *write = tls->writes.first;
        size_t taken = n < write->buf.len ? n : write->buf.len;
        write->buf.data += taken;
        write->buf.len -= taken;
        n -= taken;
        if (write->buf.len > 0) {
            return;
        }
        write->end_at = tls->wire.out.n_sent + tls->wire.out.len;
        push(&tls->encrypted, pop(&tls->writes));
        tls->n_writes--;
        tls->n_flushed--;
    }
}

static size_t encrypt_pushed(struct bow_tls *tls)
{
    struct iovec pieces[MAX_PIECES];
    int n_pieces = 0;

    if (tls->n_flushed == 0) {
        return 0;
    }
    size_t n = gather(tls, pieces, &n_pieces) > 0 ? encrypt(tls, pieces, n_pieces) : 0;
    take(tls, n);
    return n;
}

/* What is pulled. Sets `*ret_waits` when a handler has something to come. */
static size_t encrypt_pulled(struct bow_tls *tls, bool *ret_waits)
{
    struct iovec pieces[MAX_PIECES];

    int n_pieces = bow_handler_drain(&tls->handler, pieces, MAX_PIECES);
    *ret_waits = n_pieces < 0;
    if (n_pieces <= 0 || tls->state != BOW__TLS_OPEN) {
        return 0;
    }
    size_t n = encrypt(tls, pieces, n_pieces);
    if (n > 0) {
        bow_handler_sent(&tls->handler, n);
    }
    return n;
}

void bow__tls_say_goodbye(struct bow_tls *tls)
{
    if (tls->state != BOW__TLS_OPEN || tls->said_goodbye) {
        return;
    }
    tls->said_goodbye = true;
    bow__tls_enter();
    /* Fails for want of memory only: the peer then sees a cut, which is true enough. */
    (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

/* Whether all that there is has been encrypted. */
static bool fill(struct bow_tls *tls, bool *ret_waits)
{
    if (bow__filter_is_ending(tls->handler.channel)) {
        tls->n_flushed = tls->n_writes;
    }
    while (tls->state == BOW__TLS_OPEN && tls->wire.out.len < OUT_BYTES) {
        if (encrypt_pushed(tls) > 0 || tls->n_flushed > 0) {
            continue;
        }
        if (encrypt_pulled(tls, ret_waits) == 0) {
            return !*ret_waits;
        }
    }
    return false;
}

/* Offer */

static bool owes_output(struct bow_tls *tls)
{
    struct iovec piece;

    if (tls->n_flushed > 0 || (tls->n_writes > 0 && bow__filter_is_ending(tls->handler.channel))) {
        return true;
    }
    return bow_handler_drain(&tls->handler, &piece, 1) != 0;
}

static bool is_client_to_begin(const struct bow_tls *tls)
{
    return SSL_is_server(tls->ssl) == 0 && tls->wire.out.n_sent + tls->wire.out.len == 0;
}

int bow__tls_on_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);
    bool waits = false;

    if (tls->state == BOW__TLS_HANDSHAKE && is_client_to_begin(tls)) {
        bow__tls_shake_hands(tls);
    }
    if (tls->state == BOW__TLS_OPEN && !tls->said_goodbye && fill(tls, &waits) &&
        bow__filter_is_ending(handler->channel)) {
        bow__tls_say_goodbye(tls);
        bow__tls_close_if_over(tls);
    }
    complete_sent(tls);
    int n = bow__tls_out_pieces(&tls->wire.out, pieces, max);
    if (n == 0 && (waits || (tls->state == BOW__TLS_HANDSHAKE && owes_output(tls)))) {
        return -EAGAIN;
    }
    return n;
}

void bow__tls_on_sent(struct bow_handler *handler, size_t n)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    bow__tls_out_sent(&tls->wire.out, n);
    complete_sent(tls);
}
