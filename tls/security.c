/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Contexts as programs make them: of options, which are kept for a reload; and as servers and
 * clients of calls use them, by the table of <bowline/security.h>. Knows nothing of what is in a
 * setup.
 */

#include "base/alloc.h"
#include "base/list.h"
#include "base/options.h"
#include "tls/bio.h"
#include "tls/context.h"
#include "tls/context_lock.h"
#include "tls/handler.h"

#include <bowline/security.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Options */

/* A copy of options with their texts behind them, in one piece: a first pass without memory
 * measures, a second one copies. */
struct copier {
    char *next; /* NULL while measuring */
    size_t n_bytes;
};

static const void *copy_bytes(struct copier *copier, const void *bytes, size_t n)
{
    void *at = copier->next;

    copier->n_bytes += n;
    if (at == NULL || n == 0) {
        return NULL;
    }
    memcpy(at, bytes, n);
    copier->next += n;
    return at;
}

static const char *copy_text(struct copier *copier, const char *text)
{
    return text != NULL ? copy_bytes(copier, text, strlen(text) + 1) : NULL;
}

static void copy_certificate(struct copier *copier, const struct bow_tls_certificate *from,
                             struct bow_tls_certificate *to)
{
    to->certificate_file = copy_text(copier, from->certificate_file);
    to->key_file = copy_text(copier, from->key_file);
}

/* The array first, for it is aligned there. */
static void copy_options(struct copier *copier, const struct bow_tls_context_options *from,
                         struct bow_tls_context_options *to)
{
    size_t n = from->n_more_certificates;
    struct bow_tls_certificate ignored;
    struct bow_tls_certificate *more = (struct bow_tls_certificate *)(uintptr_t)copy_bytes(
        copier, from->more_certificates, n * sizeof(*more));

    *to = *from;
    to->more_certificates = more;
    for (size_t i = 0; i < n; i++) {
        copy_certificate(copier, &from->more_certificates[i], more != NULL ? &more[i] : &ignored);
    }
    copy_certificate(copier, &from->certificate, &to->certificate);
    to->ca_file = copy_text(copier, from->ca_file);
    to->alpn = copy_text(copier, from->alpn);
}

static struct bow_tls_context_options *options_dup(struct bow_context *context,
                                                   const struct bow_tls_context_options *options,
                                                   size_t *ret_bytes)
{
    struct bow_tls_context_options measured;
    struct copier copier = {NULL, 0};

    copy_options(&copier, options, &measured);
    *ret_bytes = sizeof(*options) + copier.n_bytes;
    struct bow_tls_context_options *copy = bow__alloc(context, *ret_bytes);
    if (copy != NULL) {
        copier = (struct copier){(char *)(copy + 1), 0};
        copy_options(&copier, options, copy);
    }
    return copy;
}

static int report(int rc, struct bow__text *why, struct bow_tls_error *ret_error)
{
    if (rc == -ENOMEM) {
        bow__text_clear(why);
        bow__text_printf(why, "out of memory");
    }
    if (rc < 0 && ret_error != NULL) {
        ret_error->error = rc;
        (void)snprintf(ret_error->text, sizeof(ret_error->text), "%s", why->bytes);
    }
    return rc;
}

static int read_options(struct bow_tls_context_options *ret_options,
                        const struct bow_tls_context_options *given, struct bow__text *why)
{
    *ret_options = (struct bow_tls_context_options)BOW_TLS_CONTEXT_OPTIONS_INIT;
    bow__text_clear(why);
    int rc = bow__options_read(ret_options, sizeof(*ret_options), given);
    if (rc < 0 || (ret_options->side != BOW_TLS_SERVER && ret_options->side != BOW_TLS_CLIENT) ||
        (ret_options->n_more_certificates > 0 && ret_options->more_certificates == NULL) ||
        ret_options->n_more_certificates > SIZE_MAX / 2 / sizeof(struct bow_tls_certificate)) {
        bow__text_printf(why, "options were not set from BOW_TLS_CONTEXT_OPTIONS_INIT, or name no "
                              "side, or count certificates that are not there");
        return -EINVAL;
    }
    return 0;
}

static int new_setup(struct bow_context *context, const struct bow_tls_context_options *options,
                     struct bow__tls_setup **ret_setup, struct bow__text *why)
{
    int rc = bow__tls_setup_new(context, options, ret_setup, why);
    if (rc == 0 && options->side == BOW_TLS_SERVER) {
        bow__tls_choose_by_name(*ret_setup);
    }
    return rc;
}

/* Exchange */

static int refuse_foreign(int rc, struct bow__text *why)
{
    bow__text_printf(why, BOW__TLS_FOREIGN);
    return rc;
}

/* Takes `copy` and `setup` on success. */
static int exchange(struct bow_tls_context *tls_context, struct bow_tls_context_options *copy,
                    size_t copy_bytes_, struct bow__tls_setup *setup)
{
    int rc = bow__tls_context_lock(tls_context);
    if (rc < 0) {
        return rc;
    }
    struct bow__tls_setup *old_setup = tls_context->setup;
    struct bow_tls_context_options *old_copy = tls_context->copy;
    size_t old_bytes = tls_context->copy_bytes;
    tls_context->setup = setup;
    tls_context->copy = copy;
    tls_context->copy_bytes = copy_bytes_;
    /* They were verified by what counted then. */
    bow__tls_sessions_clear(tls_context);
    bow__tls_context_unlock(tls_context);
    bow__tls_setup_unref(old_setup);
    bow__free(tls_context->context, old_copy, old_bytes);
    return 0;
}

static int swap(struct bow_tls_context *tls_context, const struct bow_tls_context_options *options,
                struct bow__text *why)
{
    struct bow__tls_setup *setup = NULL;
    size_t n_bytes = 0;

    if (options->side != tls_context->side) {
        bow__text_printf(why, "side can't change");
        return -EINVAL;
    }
    struct bow_tls_context_options *copy = options_dup(tls_context->context, options, &n_bytes);
    if (copy == NULL) {
        return -ENOMEM;
    }
    int rc = new_setup(tls_context->context, options, &setup, why);
    if (rc < 0) {
        bow__free(tls_context->context, copy, n_bytes);
        return rc;
    }
    rc = exchange(tls_context, copy, n_bytes, setup);
    if (rc < 0) {
        bow__tls_setup_unref(setup);
        bow__free(tls_context->context, copy, n_bytes);
        return refuse_foreign(rc, why);
    }
    return 0;
}

int bow_tls_context_swap(struct bow_tls_context *tls_context,
                         const struct bow_tls_context_options *options,
                         struct bow_tls_error *ret_error)
{
    struct bow_tls_context_options known;
    struct bow__text why;

    int rc = read_options(&known, options, &why);
    return report(rc < 0 ? rc : swap(tls_context, &known, &why), &why, ret_error);
}

int bow_tls_context_reload(struct bow_tls_context *tls_context, struct bow_tls_error *ret_error)
{
    struct bow__text why;
    size_t n_bytes = 0;

    bow__text_clear(&why);
    /* A copy, for another reload may take the one in the context away meanwhile; and the user's
     * SSL_CTX, if there is one, lives as long as its setup. */
    int rc = bow__tls_context_lock(tls_context);
    if (rc < 0) {
        return report(refuse_foreign(rc, &why), &why, ret_error);
    }
    struct bow__tls_setup *setup = bow__tls_setup_ref(tls_context->setup);
    struct bow_tls_context_options *options =
        options_dup(tls_context->context, tls_context->copy, &n_bytes);
    bow__tls_context_unlock(tls_context);
    rc = options != NULL ? swap(tls_context, options, &why) : -ENOMEM;
    bow__free(tls_context->context, options, n_bytes);
    bow__tls_setup_unref(setup);
    return report(rc, &why, ret_error);
}

/* For calls */

static struct bow_tls_context *context_of(struct bow_security *security)
{
    return BOW__CONTAINER(security, struct bow_tls_context, security);
}

static struct bow_security *ref(struct bow_security *security)
{
    return &bow_tls_context_ref(context_of(security))->security;
}

static void unref(struct bow_security *security)
{
    bow_tls_context_unref(context_of(security));
}

static int add(struct bow_security *security, struct bow_channel *channel,
               const struct bow_security_request *request)
{
    struct bow_tls_options options = BOW_TLS_OPTIONS_INIT;
    struct bow_tls *tls = NULL;

    options.server_name = request->server_name;
    options.alpn = request->alpn;
    int rc = bow_tls_new(context_of(security), &options, &tls);
    if (rc < 0) {
        return rc;
    }
    bow_channel_add_last(channel, bow_tls_handler(tls));
    return 0;
}

static const char *failure(struct bow_channel *channel)
{
    const struct bow_tls *tls = bow_tls_of(channel);

    return tls != NULL ? bow_tls_failure(tls) : "";
}

static int peer_subject(struct bow_channel *channel, char *text, size_t size)
{
    const struct bow_tls *tls = bow_tls_of(channel);

    return tls != NULL ? bow_tls_peer_subject(tls, text, size) : -ENODATA;
}

static int reload(struct bow_security *security, char *text, size_t size)
{
    struct bow_tls_error error = {0};

    int rc = bow_tls_context_reload(context_of(security), &error);
    if (rc < 0) {
        snprintf(text, size, "%s", error.text);
    }
    return rc;
}

static const struct bow_security_ops security_ops = {
    .name = "tls",
    .ref = ref,
    .unref = unref,
    .add = add,
    .failure = failure,
    .peer_subject = peer_subject,
    .reload = reload,
};

struct bow_security *bow_tls_security(struct bow_tls_context *tls_context)
{
    return &tls_context->security;
}

/* Birth */

static int make(struct bow_tls_context *tls_context, const struct bow_tls_context_options *options,
                struct bow__text *why)
{
    tls_context->side = options->side;
    tls_context->bio_method = bow__tls_bio_method();
    tls_context->copy = options_dup(tls_context->context, options, &tls_context->copy_bytes);
    if (tls_context->bio_method == NULL || tls_context->copy == NULL) {
        return -ENOMEM;
    }
    return new_setup(tls_context->context, options, &tls_context->setup, why);
}

int bow_tls_context_new(struct bow_context *context, const struct bow_tls_context_options *options,
                        struct bow_tls_context **ret_tls_context, struct bow_tls_error *ret_error)
{
    struct bow_tls_context_options known;
    struct bow__text why;

    int rc = read_options(&known, options, &why);
    if (rc < 0) {
        return report(rc, &why, ret_error);
    }
    struct bow_tls_context *tls_context = bow__alloc_zero(context, sizeof(*tls_context));
    if (tls_context == NULL) {
        return report(-ENOMEM, &why, ret_error);
    }
    tls_context->security.ops = &security_ops;
    tls_context->context = bow_context_ref(context);
    atomic_init(&tls_context->refs, 1);
    pthread_mutex_init(&tls_context->mutex, NULL);
    bow__list_init(&tls_context->sessions);
    rc = make(tls_context, &known, &why);
    if (rc < 0) {
        bow_tls_context_unref(tls_context);
        return report(rc, &why, ret_error);
    }
    *ret_tls_context = tls_context;
    return 0;
}
