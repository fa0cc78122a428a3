/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_TLS_PEER_H
#define BOWLINE_TESTS_TLS_PEER_H

/*
 * A client that is OpenSSL alone, on a plain non-blocking socket of the test's: the other end of
 * a channel whose TLS is under test. It never raises SIGPIPE.
 */

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

struct tls_peer {
    int fd;
    SSL_CTX *ssl_ctx;
    SSL *ssl;
    bool has_ended; /* a close_notify, or the end of the connection, was read */
};

void tls_peer_init(struct tls_peer *peer, int fd);
/** The socket too, unless it is closed (-1) already. */
void tls_peer_fini(struct tls_peer *peer);

/** Whether the handshake is done, or can't be any more. */
bool tls_peer_shake_hands(struct tls_peer *peer);
/** Encrypt and send; returns how many bytes were taken, 0 while the socket is full. */
size_t tls_peer_send(struct tls_peer *peer, const void *bytes, size_t len);
/** Returns how many bytes were received, 0 for none now. */
size_t tls_peer_receive(struct tls_peer *peer, void *bytes, size_t max);
/** Say close_notify and shut the socket's sending side. */
void tls_peer_shut(struct tls_peer *peer);

#endif
