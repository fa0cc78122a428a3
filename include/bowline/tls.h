/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TLS_H
#define BOWLINE_TLS_H

/*
 * TLS as a handler, in a library of its own (libbowline-tls, over OpenSSL): add one in
 * front of the handlers that shall speak through it.
 *
 *     socket ─► head ─► TLS ─► your handlers ─► tail        inbound: decrypted
 *     socket ◄─ head ◄─ TLS ◄─ your handlers                outbound: pushed or pulled, encrypted
 *
 * A bow_tls_context holds what connections share: certificates, whom to trust, sessions.
 * A bow_tls is one connection's:
 *
 *     bow_tls_new ─► added to a channel ─► handshake ─► open ─► on_removed: it frees itself
 *
 *     static int on_channel(struct bow_channel *channel, void *user)
 *     {
 *         struct bow_tls *tls;
 *         int rc = bow_tls_new(((struct app *)user)->tls, NULL, &tls);
 *         if (rc < 0) { return rc; }
 *         bow_channel_add_last(channel, bow_tls_handler(tls));
 *         ... add your own ...
 *     }
 *
 * What the handlers behind it see:
 * - on_active comes when the handshake is done, so that what follows from it (ALPN, the
 *   peer's certificate) is known by then. Writes before that wait.
 * - The peer's close_notify is on_eof. A connection that ends without one was cut:
 * on_error(-EPROTO), and it closes. Our own side ends with a close_notify; a bow_channel_close()
 * sends one if the socket takes it.
 * - A failure is on_error(): -EKEYREJECTED (the peer's certificate), -ETIMEDOUT (the
 *   handshake took too long), -EMSGSIZE (a limit), -ENOMEM, -EPROTO (all else);
 *   bow_tls_failure() says it in words. The channel then closes, by itself, within a second: the
 *   peer is told why first, and a close asked for meanwhile does not shorten that.
 *
 * A session is taken up until the first of the certificates ends that it was made with, those of
 * the chain included, however often it was renewed; after that, the handshake is whole. A server
 * takes the tickets of another one that has the same keys only where both have the same rules for
 * their clients' certificates.
 *
 * Spoken are TLS 1.2 and 1.3; there is no renegotiation, no compression, no early data.
 */

#include <bowline/channel.h>
#include <bowline/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_tls;
struct bow_security;
struct bow_tls_context;
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct ssl_st;     /* OpenSSL's SSL */

/** Which end of a connection we are. */
enum bow_tls_side {
    BOW_TLS_SERVER = 0,
    BOW_TLS_CLIENT = 1,
};

/** What a server asks of its clients. */
enum bow_tls_peer {
    BOW_TLS_PEER_ANY = 0,     /* no certificate */
    BOW_TLS_PEER_REQUEST = 1, /* a client that has a certificate sends it, and it must be good */
    BOW_TLS_PEER_REQUIRE = 2, /* mutual TLS: a client without one is refused */
};

/** Versions of the protocol. */
enum bow_tls_version {
    BOW_TLS_VERSION_DEFAULT = 0, /* 1.2 at least, 1.3 at most */
    BOW_TLS_VERSION_1_2 = 12,
    BOW_TLS_VERSION_1_3 = 13,
};

/**
 * A client has said whom it wants to reach, and no certificate has been chosen yet: choose another
 * context with bow_tls_use(), or leave it to the options. `server_name` is NULL when the client
 * named nobody; it is the client's word, and may be any text. It may not write, nor free anything.
 *
 * Thread:  loop
 * Returns: 0; a negative errno refuses the client, who is told that nobody here has that name
 */
typedef int (*bow_tls_name_fn)(struct bow_tls *tls, const char *server_name, void *user);

/** Files in PEM form. */
struct bow_tls_certificate {
    const char *certificate_file; /* the certificate, then those that lead to its CA */
    const char *key_file;         /* its private key, not encrypted; NULL: in certificate_file */
};

/** What a TLS context is made with; begin with BOW_TLS_CONTEXT_OPTIONS_INIT. */
struct bow_tls_context_options {
    size_t size; /* sizeof this struct, set by the INIT */
    enum bow_tls_side side;
    struct bow_tls_certificate certificate; /* a server needs one; a client for mutual TLS */
    /** Of a server: used when the client asks for a name that they hold and `certificate` does not.
     */
    const struct bow_tls_certificate *more_certificates;
    size_t n_more_certificates;
    const char *ca_file;              /* PEM: whom to trust; NULL, on a client: the system's CAs */
    enum bow_tls_peer clients;        /* of a server; other than ANY needs ca_file */
    const char *alpn;                 /* "h2,http/1.1", in order of preference; NULL: none */
    enum bow_tls_version min_version; /* DEFAULT: 1.2 */
    enum bow_tls_version max_version; /* DEFAULT: 1.3 */
    bool trust_anyone; /* a client does not verify the server: no protection against an attacker */
    /** An SSL_CTX of yours in place of all above but `side`; shared. Do not change it any more. It
     * keeps no sessions but those that you keep, and how long its tickets hold is yours to say. */
    struct ssl_ctx_st *ssl_ctx;
    bow_tls_name_fn on_server_name; /* of a server; NULL: the certificates above serve all names */
    void *user;
    /** A client takes the CN of a server's certificate that names no host in its subjectAltName for
     * one, which RFC 9525 forbids: a CN is any text that a CA let pass. For old certificates only,
     * until they are renewed; an address is never looked for there. Also with an ssl_ctx. */
    bool trust_common_name;
};

#define BOW_TLS_CONTEXT_OPTIONS_INIT BOW__INIT(struct bow_tls_context_options, )

/** Why a context can't be made: the file, what is wrong with it, and what to do. */
struct bow_tls_error {
    int error; /* negative errno */
    char text[512];
};

/**
 * Read the files and make a context with one reference.
 *
 * Thread:  any; the context may be used by all threads
 * Owns:    shares `context`; copies `options`; gives `*ret_tls_context`, drop it with
 *          bow_tls_context_unref()
 * Returns: 0; -EINVAL (options, or files that do not fit together); -EBADMSG (a file's content);
 * what opening a file failed with; -ENOMEM. `*ret_error` (may be NULL) then says it in words
 */
BOW_EXPORT BOW_MUST_USE int bow_tls_context_new(struct bow_context *context,
                                                const struct bow_tls_context_options *options,
                                                struct bow_tls_context **ret_tls_context,
                                                struct bow_tls_error *ret_error);

/** Take a reference to a TLS context. Thread: any. Returns: `tls_context`. */
BOW_EXPORT struct bow_tls_context *bow_tls_context_ref(struct bow_tls_context *tls_context);
/** Drop a reference to a TLS context; connections hold their own. NULL is allowed. Thread: any.
 * Returns: NULL. */
BOW_EXPORT struct bow_tls_context *bow_tls_context_unref(struct bow_tls_context *tls_context);

/**
 * Read the same files again, for renewed certificates. Connections that begin from now on use
 * the new ones, those that are there go on; kept sessions are forgotten. When
 * something is wrong, nothing has changed. Thread: any; blocks on files. Returns as
 * bow_tls_context_new(); -ECHILD after fork(), when the parent process has used the context.
 */
BOW_EXPORT BOW_MUST_USE int bow_tls_context_reload(struct bow_tls_context *tls_context,
                                                   struct bow_tls_error *ret_error);
/** Do as bow_tls_context_reload(), with other options; `side` can't change (-EINVAL). */
BOW_EXPORT BOW_MUST_USE int bow_tls_context_swap(struct bow_tls_context *tls_context,
                                                 const struct bow_tls_context_options *options,
                                                 struct bow_tls_error *ret_error);

/**
 * The TLS context as the security of servers and clients of calls (<bowline/server.h>,
 * <bowline/client.h>), which take references of their own. Where its options name no alpn,
 * what they speak is offered and chosen: "bowline/1" and "h2".
 *
 * Thread:  any
 * Owns:    lends it; it lives as long as `tls_context`
 */
BOW_EXPORT struct bow_security *bow_tls_security(struct bow_tls_context *tls_context);

/** What one connection is made with; begin with BOW_TLS_OPTIONS_INIT. */
struct bow_tls_options {
    size_t size; /* sizeof this struct, set by the INIT */
    /** Of a client: what the server's certificate must be for, a host's name or an address; a name
     * is sent to the server too (SNI). */
    const char *server_name;
    /** Of a client: connections with equal keys and server names resume each other's sessions;
     * NULL: the name alone counts. */
    const char *session_key;
    uint64_t handshake_timeout_ns; /* 0: BOW_LIMIT_TLS_HANDSHAKE_NS; BOW_NEVER */
    const char *alpn; /* protocols, at most 31 bytes, where the context's options name none */
};

#define BOW_TLS_OPTIONS_INIT BOW__INIT(struct bow_tls_options, )

/**
 * Make the TLS end of one connection, of the context's side.
 *
 * Thread:  any; afterwards the loop of its channel
 * Owns:    shares `tls_context`; copies `options` (NULL: the defaults); gives `*ret_tls` until its
 *          handler is added to a channel
 * Returns: 0; -ENOMEM; -EINVAL: options, or a client that verifies and has no server_name; -ECHILD
 *          after fork(), when the parent process has used the context
 */
BOW_EXPORT BOW_MUST_USE int bow_tls_new(struct bow_tls_context *tls_context,
                                        const struct bow_tls_options *options,
                                        struct bow_tls **ret_tls);
/** What to add to a channel, once. From then on it frees itself with on_removed. */
BOW_EXPORT struct bow_handler *bow_tls_handler(struct bow_tls *tls);
/** Free one that was never added. NULL is allowed. */
BOW_EXPORT void bow_tls_free(struct bow_tls *tls);

/**
 * Go on with the certificates and the ALPN of another server's context, as it is now; versions
 * stay. Only from inside on_server_name. Neither of the two may ask clients for certificates:
 * a session that one of them gave would vouch for its client at the other.
 *
 * Thread:  loop
 * Owns:    shares what it needs of `tls_context`
 * Returns: 0; -EINVAL (another side, another place, or clients' certificates); -ENOMEM; -ECHILD
 */
BOW_EXPORT BOW_MUST_USE int bow_tls_use(struct bow_tls *tls, struct bow_tls_context *tls_context);

/* Asking. Thread: loop. */

/** The TLS of `channel`, or NULL. */
BOW_EXPORT struct bow_tls *bow_tls_of(struct bow_channel *channel);
/** Whether the handshake is done and nothing has failed. */
BOW_EXPORT bool bow_tls_is_open(const struct bow_tls *tls);
/** Why it failed, in words; "" while it has not. Lives as long as `tls`. */
BOW_EXPORT const char *bow_tls_failure(const struct bow_tls *tls);
/** The protocol that ALPN chose; empty for none. Lives as long as `tls`. */
BOW_EXPORT struct bow_slice bow_tls_alpn(const struct bow_tls *tls);
/** Whether ALPN chose `protocol`. */
BOW_EXPORT bool bow_tls_alpn_is(const struct bow_tls *tls, const char *protocol);
/** The version that is spoken, as OpenSSL writes it: "TLSv1.3". */
BOW_EXPORT const char *bow_tls_version_name(const struct bow_tls *tls);
/** Whether an earlier session was taken up, without certificates going over the wire. */
BOW_EXPORT bool bow_tls_is_resumed(const struct bow_tls *tls);
/** The name that the client asked for; NULL for none. */
BOW_EXPORT const char *bow_tls_server_name(const struct bow_tls *tls);
/**
 * The subject of the peer's certificate as RFC 2253 writes it: "CN=alice,O=Example". It was
 * verified, unless options said trust_anyone.
 *
 * Returns: 0; -ENODATA without a certificate; -ENOSPC when it does not fit
 */
BOW_EXPORT BOW_MUST_USE int bow_tls_peer_subject(const struct bow_tls *tls, char *text,
                                                 size_t size);
/** The SSL underneath, to ask it what is not asked here. */
BOW_EXPORT struct ssl_st *bow_tls_ssl(const struct bow_tls *tls);

#ifdef __cplusplus
}
#endif
#endif
