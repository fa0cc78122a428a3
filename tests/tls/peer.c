/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* OpenSSL over a socket, on memory BIOs; see the header. */

#include "tests/tls/peer.h"

#include <errno.h>
#include <openssl/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* More than that is not encrypted while the socket is full. */
#define MAX_PENDING_BYTES ((size_t)64 << 10)

void tls_peer_init(struct tls_peer *peer, int fd)
{
    *peer = (struct tls_peer){.fd = fd, .ssl_ctx = SSL_CTX_new(TLS_client_method())};
    assert_non_null(peer->ssl_ctx);
    peer->ssl = SSL_new(peer->ssl_ctx);
    assert_non_null(peer->ssl);
    SSL_set_bio(peer->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(peer->ssl);
}

void tls_peer_fini(struct tls_peer *peer)
{
    SSL_free(peer->ssl);
    SSL_CTX_free(peer->ssl_ctx);
    ERR_clear_error();
    if (peer->fd >= 0) {
        close(peer->fd);
    }
}

static size_t flush(struct tls_peer *peer)
{
    BIO *output = SSL_get_wbio(peer->ssl);
    char *bytes = NULL;
    size_t len = (size_t)BIO_get_mem_data(output, &bytes);

    if (len > 0 && peer->fd >= 0) {
        ssize_t n = send(peer->fd, bytes, len, MSG_NOSIGNAL);
        for (ssize_t left = n; left > 0;) {
            char sink[4096];
            int taken = BIO_read(output, sink,
                                 left < (ssize_t)sizeof(sink) ? (int)left : (int)sizeof(sink));
            assert_true(taken > 0);
            left -= taken;
        }
        len -= n > 0 ? (size_t)n : 0;
    }
    return len;
}

static void fill(struct tls_peer *peer)
{
    char bytes[16384];

    if (peer->fd < 0 || BIO_ctrl_pending(SSL_get_rbio(peer->ssl)) > 0) {
        return;
    }
    ssize_t n = recv(peer->fd, bytes, sizeof(bytes), 0);
    if (n > 0) {
        assert_int_equal(BIO_write(SSL_get_rbio(peer->ssl), bytes, (int)n), n);
    } else if (n == 0 || errno != EAGAIN) {
        peer->has_ended = true;
    }
}

bool tls_peer_shake_hands(struct tls_peer *peer)
{
    fill(peer);
    int rc = SSL_do_handshake(peer->ssl);
    bool is_over = rc == 1 || SSL_get_error(peer->ssl, rc) != SSL_ERROR_WANT_READ;
    ERR_clear_error();
    (void)flush(peer);
    return is_over || peer->has_ended;
}

size_t tls_peer_send(struct tls_peer *peer, const void *bytes, size_t len)
{
    size_t n = 0;

    if (flush(peer) > MAX_PENDING_BYTES) {
        return 0;
    }
    (void)SSL_write_ex(peer->ssl, bytes, len < 16384 ? len : 16384, &n);
    ERR_clear_error();
    (void)flush(peer);
    return n;
}

size_t tls_peer_receive(struct tls_peer *peer, void *bytes, size_t max)
{
    size_t n = 0;

    (void)flush(peer);
    if (max == 0) {
        return 0;
    }
    for (int i = 0; i < 4; i++) {
        int rc = SSL_read_ex(peer->ssl, bytes, max, &n);
        if (rc == 1) {
            return n;
        }
        if (SSL_get_error(peer->ssl, rc) != SSL_ERROR_WANT_READ) {
            peer->has_ended = true;
        }
        ERR_clear_error();
        fill(peer);
    }
    return 0;
}

void tls_peer_shut(struct tls_peer *peer)
{
    (void)SSL_shutdown(peer->ssl);
    ERR_clear_error();
    assert_int_equal(flush(peer), 0);
    assert_int_equal(shutdown(peer->fd, SHUT_WR), 0);
}
