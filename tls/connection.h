/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TLS_CONNECTION_H
#define BOWLINE_TLS_CONNECTION_H

/*
 * One connection's TLS, from inside:
 *
 *     openssl_error.c what OpenSSL says, in words
 *     connection.c    the handshake, failure, the end
 *     input.c         from the wire to the handlers behind
 *     output.c        from the handlers behind to the wire
 *     validity.c      how long what was verified may stand for the next handshake
 *     handler.c       birth, the handler's callbacks, what can be asked
 *
 * SSL functions run between bow__tls_enter() and the look at their result, and call back
 * into nothing but our own: no handler runs while OpenSSL is at work.
 *
 * Invariants: decrypted bytes are never left in OpenSSL, for a record is only
 * decrypted when its bytes can be delivered, and then whole. What is encrypted is in
 * `wire.out` and leaves in that order; nothing of it lies in the channel's queue.
 */

#include "tls/bio.h"
#include "tls/context.h"
#include "transport/channel/filter.h"

/** How long a connection that failed may take to tell its peer why. */
#define BOW__TLS_LAST_WORDS_NS (UINT64_C(1) * 1000000000u)

/** The longest list of protocols that one connection names. */
#define BOW__TLS_ALPN_BYTES ((size_t)32)

/** What OpenSSL keeps for a connection that is open, which it allocates by itself. */
#define BOW__TLS_OPENSSL_BYTES ((size_t)14 << 10)

enum bow__tls_state {
    BOW__TLS_HANDSHAKE = 0,
    BOW__TLS_OPEN = 1,
    BOW__TLS_FAILED = 2,
};

/** What only the handshake needs: freed when it is done, for most connections are idle then. */
struct bow__tls_opening {
    struct bow_timer timer;
    uint64_t timeout_ns;
    uint8_t alpn[BOW__TLS_ALPN_BYTES]; /* used when the context names none */
    size_t alpn_len;
};

struct bow_tls {
    struct bow_handler handler; /* first */
    struct bow_tls_context *tls_context;
    struct bow__tls_setup *setup;
    struct bow__tls_setup *chosen; /* by on_server_name; NULL: `setup` serves this name too */
    SSL *ssl;
    struct bow__tls_opening *opening; /* NULL once the handshake is done */
    struct bow__tls_wire wire;

    struct bow__write_list writes; /* plain, the first ones flushed */
    uint32_t n_writes;
    uint32_t n_flushed;
    struct bow__write_list encrypted; /* their bytes are in wire.out, or have left */

    /** Since the epoch: when the first of the certificates ends that the session was made with, of
     * the one that a client offers or a server was shown; INT64_MAX: none counted. */
    int64_t valid_until_s;

    char *failure; /* in words; freed by its length */
    enum bow__tls_state state;
    bool is_choosing;    /* on_server_name runs */
    bool is_quiet;       /* this batch was of the handshake alone */
    bool has_opening;    /* the first byte was that of TLS */
    bool is_done;        /* the peer's close_notify came */
    bool eof_is_due;     /* and the handlers behind do not know, for delivery is paused */
    bool said_goodbye;   /* ours went */
    bool has_last_words; /* failed, and the peer is being told */

    size_t key_len;
    char key[]; /* server_name NUL session_key: the key of its sessions; begins with the name */
};

static inline struct bow_tls *bow__tls_of_handler(struct bow_handler *handler)
{
    return (struct bow_tls *)(void *)handler;
}

static inline struct bow_slice bow__tls_key(const struct bow_tls *tls)
{
    return (struct bow_slice){(const uint8_t *)tls->key, tls->key_len};
}

/* connection.c */

/** What an SSL function that did not succeed means. */
enum bow__tls_outcome {
    BOW__TLS_WANTS_MORE, /* bytes of the peer */
    BOW__TLS_DONE,       /* the peer's side has ended, in order */
    BOW__TLS_BROKEN,     /* failed, the connection with it */
};

/** Before any SSL function: its errors shall be its own. */
void bow__tls_enter(void);
/** After one that returned `rc` <= 0. A broken one is not reported yet: see bow__tls_fail_ssl(). */
enum bow__tls_outcome bow__tls_look(struct bow_tls *tls, int rc);
/** The connection has failed: handlers are told, the peer too, and it closes. `why` is in words. */
void bow__tls_fail(struct bow_tls *tls, int error, const char *why);
/** The same for what OpenSSL says. */
void bow__tls_fail_ssl(struct bow_tls *tls);
/** One step of the handshake. */
void bow__tls_shake_hands(struct bow_tls *tls);
/** Both sides have said goodbye: the channel ends. */
void bow__tls_close_if_over(struct bow_tls *tls);
/** The handshake is done, or the connection is over. Idempotent. */
void bow__tls_end_opening(struct bow_tls *tls);

/* validity.c */

/** When the first of the certificates ends that a whole handshake was made with, in seconds since
 * the epoch; INT64_MAX when no date counted. */
int64_t bow__tls_valid_until(SSL *ssl);
/** How long it is until then, by the clock of verification, in seconds; 0: it is past. */
int64_t bow__tls_valid_for(SSL *ssl, int64_t until_s);

/* openssl_error.c */

/** Keep words for bow_tls_failure(); the first ones count. */
void bow__tls_say(struct bow_tls *tls, const char *why);
/** What OpenSSL's queue says, in words, and the errno for it. The queue is empty afterwards. */
int bow__tls_explain(struct bow_tls *tls, struct bow__text *text);
/** For SSL_set_verify(): says what is wrong with the peer's certificate. */
int bow__tls_on_verify(int ok, X509_STORE_CTX *store);

#endif
