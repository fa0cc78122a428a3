/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contexts, a handshake, bytes each way and an end, with each allocation of ours failing in turn.
 */

#include "tests/support/alloc.h"
#include "tests/tls/certs.h"

#include <bowline/embedded.h>
#include <bowline/tls.h>
#include <errno.h>
#include <openssl/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define BIG_BYTES 40000

struct talk {
    struct certs *certs;
    struct bow_tls_context *contexts[2];
    struct bow_embedded *ends[2];
    struct bow_handler handlers[2];
    bool has_answer;
};

static size_t server_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    if (bytes->len < BIG_BYTES) {
        return 0; /* whole: it is kept meanwhile */
    }
    const struct bow_buf answer = bow_buf_borrow("enough", 6);
    int rc = bow_channel_write_and_flush(handler->channel, &answer, NULL, NULL);
    if (rc < 0) {
        bow_channel_close(handler->channel, rc);
    }
    return bytes->len;
}

static void client_active(struct bow_handler *handler)
{
    static const uint8_t big[BIG_BYTES];
    const struct bow_buf first = bow_buf_borrow(big, BIG_BYTES / 2);

    for (int i = 0; i < 2; i++) {
        int rc = bow_channel_write_and_flush(handler->channel, &first, NULL, NULL);
        if (rc < 0) {
            bow_channel_close(handler->channel, rc);
            return;
        }
    }
}

static size_t client_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct talk *talk =
        (struct talk *)(void *)((char *)handler - offsetof(struct talk, handlers[BOW_TLS_CLIENT]));

    talk->has_answer = true;
    bow_channel_close_after_flush(handler->channel, 1000000000u);
    return bytes->len;
}

static const struct bow_handler_ops server_ops = {.name = "server", .on_read = server_read};
static const struct bow_handler_ops client_ops = {
    .name = "client", .on_active = client_active, .on_read = client_read};

struct setup {
    struct talk *talk;
    int side;
};

static int on_channel(struct bow_channel *channel, void *user)
{
    struct bow_tls_options options = BOW_TLS_OPTIONS_INIT;
    const struct setup *setup = user;
    struct talk *talk = setup->talk;
    struct bow_tls *tls = NULL;

    options.server_name = "server.test";
    int rc = bow_tls_new(talk->contexts[setup->side], &options, &tls);
    if (rc < 0) {
        return rc;
    }
    bow_channel_add_last(channel, bow_tls_handler(tls));
    talk->handlers[setup->side].ops = setup->side == BOW_TLS_SERVER ? &server_ops : &client_ops;
    bow_channel_add_last(channel, &talk->handlers[setup->side]);
    return 0;
}

static int make_context(struct bow_context *context, struct talk *talk, enum bow_tls_side side)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_certificate more;
    char certificate[128];
    char key[128];
    char ca[128];

    options.side = side;
    options.alpn = "h2";
    options.ca_file = certs_path(talk->certs, "ca.pem", ca, sizeof(ca));
    if (side == BOW_TLS_SERVER) {
        options.certificate.certificate_file =
            certs_path(talk->certs, "server.pem", certificate, sizeof(certificate));
        options.certificate.key_file = certs_path(talk->certs, "server.key", key, sizeof(key));
        more = options.certificate;
        options.more_certificates = &more;
        options.n_more_certificates = 1;
    }
    int rc = bow_tls_context_new(context, &options, &talk->contexts[side], NULL);
    return rc < 0 ? rc : bow_tls_context_reload(talk->contexts[side], NULL);
}

static int make_end(struct bow_context *context, struct talk *talk, struct setup *setup)
{
    struct bow_embedded_options options = BOW_EMBEDDED_OPTIONS_INIT;

    options.channel.on_channel = on_channel;
    options.channel.user = setup;
    return bow_embedded_new(context, &options, &talk->ends[setup->side]);
}

static int carry(struct bow_embedded *from, struct bow_embedded *to, bool *ret_moved)
{
    struct bow_slice output = bow_embedded_output(from);

    if (output.len == 0) {
        return bow_embedded_is_ended(from) ? bow_embedded_end(to) : 0;
    }
    *ret_moved = true;
    int rc = bow_embedded_feed(to, output.data, output.len);
    bow_embedded_consume(from, output.len);
    if (rc == -EPIPE) {
        rc = 0;
    }
    int run = bow_embedded_run(from);
    return rc < 0 ? rc : run;
}

static int carry_all(struct talk *talk)
{
    bool moved = true;
    int rc = 0;

    while (rc == 0 && moved) {
        moved = false;
        rc = carry(talk->ends[1], talk->ends[0], &moved);
        if (rc == 0) {
            rc = carry(talk->ends[0], talk->ends[1], &moved);
        }
    }
    return rc < 0 ? rc : talk->has_answer ? 0 : -ENOMEM;
}

static int scenario(struct bow_context *context, void *user)
{
    struct talk talk = {.certs = user};
    struct setup setups[2] = {{&talk, 0}, {&talk, 1}};
    int rc = 0;

    for (int side = 0; side < 2 && rc == 0; side++) {
        rc = make_context(context, &talk, (enum bow_tls_side)side);
    }
    for (int side = 0; side < 2 && rc == 0; side++) {
        rc = make_end(context, &talk, &setups[side]);
    }
    if (rc == 0) {
        rc = carry_all(&talk);
    }
    for (int side = 0; side < 2; side++) {
        bow_embedded_free(talk.ends[side]);
        bow_tls_context_unref(talk.contexts[side]);
    }
    assert_int_equal(ERR_peek_error(), 0);
    return rc;
}

static void test_tls_survives_each_allocation_failing(void **state)
{
    struct certs certs;
    (void)state;

    certs_make(&certs);
    assert_true(test_alloc_fail_each(NULL, scenario, &certs) > 20);
    certs_remove(&certs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_survives_each_allocation_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
