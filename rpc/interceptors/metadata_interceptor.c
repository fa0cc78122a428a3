/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One key and value of metadata that go along with a client's calls.
 *
 * Design. The value may be set on any thread while loops send it, so the lock guards it; it is held
 * while it is copied into a call. The rest is constant. `refs`: relaxed up, acquire-release down.
 */

#include <bowline/metadata_interceptor.h>

#include "base/alloc.h"
#include "base/claim.h"
#include "base/options.h"
#include "base/text.h"
#include "rpc/core/errors.h"
#include "rpc/core/intercept.h"
#include "rpc/core/metadata.h"
#include "transport/address/transport_error.h"
#include <bowline/limits.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct bow_metadata_interceptor {
    struct bow_context *context;
    char *key;
    bool plaintext;
    atomic_uint refs;
    atomic_int used_by; /* the process that first took the lock; 0: none has yet */
    pthread_mutex_t lock;
    struct bow_slice value; /* ours */
};

/* The value is a secret, maybe. */
static void free_value(struct bow_context *context, struct bow_slice value)
{
    uint8_t *data = (uint8_t *)(uintptr_t)value.data;

    if (data != NULL) {
        explicit_bzero(data, value.len);
        bow__free(context, data, value.len + 1);
    }
}

/* Returns 0; -ENOMEM. With data NULL: NULL. */
static int copy_value(struct bow_context *context, struct bow_slice value,
                      struct bow_slice *ret_copy)
{
    *ret_copy = (struct bow_slice){NULL, 0};
    if (value.data == NULL) {
        return 0;
    }
    char *copy = bow__dup(context, (const char *)value.data, value.len);
    if (copy == NULL) {
        return -ENOMEM;
    }
    *ret_copy = (struct bow_slice){(const uint8_t *)copy, value.len};
    return 0;
}

static int check_pair(const char *key, struct bow_slice value)
{
    struct bow_metadata_entry entry = {.key = key, .value = value};

    return bow__metadata_check(&(struct bow_metadata){.entries = &entry, .n = 1});
}

/* Life */

static void destroy(struct bow_metadata_interceptor *interceptor)
{
    struct bow_context *context = interceptor->context;

    free_value(context, interceptor->value);
    if (interceptor->key != NULL) {
        bow__free(context, interceptor->key, strlen(interceptor->key) + 1);
    }
    pthread_mutex_destroy(&interceptor->lock);
    bow__free(context, interceptor, sizeof(*interceptor));
    bow_context_unref(context);
}

struct bow_metadata_interceptor *
bow_metadata_interceptor_ref(struct bow_metadata_interceptor *interceptor)
{
    atomic_fetch_add_explicit(&interceptor->refs, 1, memory_order_relaxed);
    return interceptor;
}

void bow_metadata_interceptor_unref(struct bow_metadata_interceptor *interceptor)
{
    if (interceptor != NULL &&
        atomic_fetch_sub_explicit(&interceptor->refs, 1, memory_order_acq_rel) == 1) {
        destroy(interceptor);
    }
}

static int refuse(const struct bow_metadata_interceptor_options *options, int rc, const char *what)
{
    return bow__transport_error(options->error, "making an interceptor that sends",
                                options->key != NULL ? options->key : "metadata", rc, what);
}

/* Returns 0, or why there is none. */
static int check_options(const struct bow_metadata_interceptor_options *options)
{
    if (options->context == NULL || options->key == NULL) {
        return refuse(options, -EINVAL, "set options.context and options.key");
    }
    int rc = check_pair(options->key, options->value);
    if (rc == -EINVAL) {
        return refuse(options, rc,
                      "it is no key of metadata, one that the protocols have for themselves, or "
                      "the value has bytes that only a key ending in -bin may have");
    }
    return rc < 0 ? refuse(options, rc, "it is more than BOW_LIMIT_HEADER_BYTES_MAX") : 0;
}

static int make(const struct bow_metadata_interceptor_options *options,
                struct bow_metadata_interceptor **ret_interceptor)
{
    struct bow_context *context = options->context;
    struct bow_metadata_interceptor *interceptor = bow__alloc_zero(context, sizeof(*interceptor));

    if (interceptor == NULL) {
        return -ENOMEM;
    }
    interceptor->context = bow_context_ref(context);
    interceptor->plaintext = options->plaintext;
    atomic_init(&interceptor->refs, 1);
    pthread_mutex_init(&interceptor->lock, NULL);
    interceptor->key = bow__dup(context, options->key, strlen(options->key));
    if (interceptor->key == NULL || copy_value(context, options->value, &interceptor->value) < 0) {
        destroy(interceptor);
        return -ENOMEM;
    }
    *ret_interceptor = interceptor;
    return 0;
}

int bow_metadata_interceptor_new(const struct bow_metadata_interceptor_options *options,
                                 struct bow_metadata_interceptor **ret_interceptor)
{
    struct bow_metadata_interceptor_options known = BOW_METADATA_INTERCEPTOR_OPTIONS_INIT;

    int rc = bow__options_read(&known, sizeof(known), options);
    if (rc < 0) {
        return options != NULL && options->size == 0
                   ? refuse(options, rc,
                            "begin the options with BOW_METADATA_INTERCEPTOR_OPTIONS_INIT")
                   : rc;
    }
    rc = check_options(&known);
    if (rc < 0) {
        return rc;
    }
    rc = make(&known, ret_interceptor);
    return rc < 0 ? refuse(&known, rc, NULL) : 0;
}

/* Returns 0, or -ECHILD: the lock may be held for ever. */
static int lock(struct bow_metadata_interceptor *interceptor)
{
    if (!bow__claim(bow__context_process(interceptor->context), &interceptor->used_by)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&interceptor->lock);
    return 0;
}

int bow_metadata_interceptor_set(struct bow_metadata_interceptor *interceptor,
                                 struct bow_slice value)
{
    struct bow_slice fresh;

    int rc = check_pair(interceptor->key, value);
    if (rc < 0) {
        return rc;
    }
    rc = copy_value(interceptor->context, value, &fresh);
    if (rc < 0) {
        return rc;
    }
    rc = lock(interceptor);
    if (rc < 0) {
        free_value(interceptor->context, fresh);
        return rc;
    }
    struct bow_slice before = interceptor->value;
    interceptor->value = fresh;
    pthread_mutex_unlock(&interceptor->lock);
    free_value(interceptor->context, before);
    return 0;
}

/* A client's calls */

static bool has_key(struct bow_interception *at, const char *key)
{
    struct bow_metadata metadata = bow_interception_metadata(at);

    for (size_t i = 0; i < metadata.n; i++) {
        if (strcmp(metadata.entries[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

/* Also when that cannot be told, which add() says. */
static bool has_value(struct bow_metadata_interceptor *interceptor)
{
    if (lock(interceptor) < 0) {
        return true;
    }
    bool has = interceptor->value.data != NULL;
    pthread_mutex_unlock(&interceptor->lock);
    return has;
}

/* Returns 0, or why it cannot be sent. */
static int add(struct bow_metadata_interceptor *interceptor, struct bow_interception *at)
{
    int rc = lock(interceptor);

    if (rc < 0) {
        return rc;
    }
    if (interceptor->value.data != NULL) {
        rc = bow_interception_add_request(at, interceptor->key, interceptor->value);
    }
    pthread_mutex_unlock(&interceptor->lock);
    return rc;
}

static void send_along(struct bow_interception *at, void *user)
{
    struct bow_metadata_interceptor *interceptor = user;
    struct bow__text text;

    if (has_key(at, interceptor->key) || !has_value(interceptor)) {
        return;
    }
    if (!bow_interception_is_secure(at) && !interceptor->plaintext) {
        (void)bow_interception_refuse(
            at, BOW_UNAUTHENTICATED,
            "\"%s\" is not sent over a connection that is not secured; set the client's "
            "options.security, or plaintext of the interceptor's options to allow that",
            interceptor->key);
        return;
    }
    int rc = add(interceptor, at);
    if (rc < 0) {
        bow__text_clear(&text);
        bow__text_errno(&text, rc);
        (void)bow_interception_refuse(at, bow__code_from_errno(rc),
                                      "\"%s\" cannot be sent with the call: %s", interceptor->key,
                                      text.bytes);
    }
}

static void release(void *user)
{
    bow_metadata_interceptor_unref(user);
}

void bow_metadata_interceptor_send(struct bow_metadata_interceptor *interceptor,
                                   struct bow_interceptor *ret_send)
{
    *ret_send = (struct bow_interceptor)BOW_INTERCEPTOR_INIT;
    ret_send->name = "metadata";
    ret_send->on_start = send_along;
    ret_send->release = release;
    ret_send->user = bow_metadata_interceptor_ref(interceptor);
}
