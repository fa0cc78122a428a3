/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bearer tokens of calls: asked for by a server, and sent along by a client.
 *
 * Design. The tokens may be read again on any thread while loops look at them, so the lock guards
 * them; it is held for one look-up. The rest is constant. `refs`: relaxed up, acquire-release
 * down.
 */

#include "base/alloc.h"
#include "base/claim.h"
#include "base/options.h"
#include "base/refuse.h"
#include "base/text.h"
#include "rpc/core/intercept.h"
#include "rpc/interceptors/auth_tokens.h"
#include "transport/address/transport_error.h"
#include <bowline/call.h>
#include <bowline/service.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define KEY "authorization"
#define SCHEME "Bearer "
#define NOT_ACCEPTED "was sent a token that is not accepted"

/* By which handlers find whose token it was: of a call, and not of one bearer. */
static const char subject_key[] = "bearer";

struct checked {
    const char *subject; /* NULL: nobody's that is known; in the call's memory */
};

struct bow_bearer {
    struct bow_context *context;
    struct bow_bearer_options options; /* `file` and `open` are ours */
    atomic_uint refs;
    atomic_int used_by; /* the process that first took the lock; 0: none has yet */
    pthread_mutex_t lock;
    struct bow__tokens tokens;
};

static const struct bow__process *process_of(const struct bow_bearer *bearer)
{
    return bow__context_process(bearer->context);
}

static bool is_foreign(const struct bow_bearer *bearer)
{
    return bow__is_claimed_elsewhere(process_of(bearer), &bearer->used_by);
}

/* Returns 0, or -ECHILD: the lock may be held for ever. */
static int lock(struct bow_bearer *bearer)
{
    if (!bow__claim(process_of(bearer), &bearer->used_by)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&bearer->lock);
    return 0;
}

/* Life */

static void free_text(struct bow_context *context, const char *text)
{
    if (text != NULL) {
        bow__free(context, (char *)(uintptr_t)text, strlen(text) + 1);
    }
}

static void destroy(struct bow_bearer *bearer)
{
    struct bow_context *context = bearer->context;
    free_text(context, bearer->options.file);
    free_text(context, bearer->options.open);
    bow__tokens_fini(&bearer->tokens, context);
    pthread_mutex_destroy(&bearer->lock);
    bow__free(context, bearer, sizeof(*bearer));
    bow_context_unref(context);
}

struct bow_bearer *bow_bearer_ref(struct bow_bearer *bearer)
{
    atomic_fetch_add_explicit(&bearer->refs, 1, memory_order_relaxed);
    return bearer;
}

void bow_bearer_unref(struct bow_bearer *bearer)
{
    if (bearer != NULL && atomic_fetch_sub_explicit(&bearer->refs, 1, memory_order_acq_rel) == 1) {
        destroy(bearer);
    }
}

/* Between commas, none of them empty. */
static bool are_names(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && text[0] != ',' && text[len - 1] != ',' && strstr(text, ",,") == NULL;
}

static int check_options(const struct bow_bearer_options *options)
{
    bool calls_back = options->check != NULL || options->get != NULL;

    if (options->open != NULL && !are_names(options->open)) {
        return bow__transport_error(options->error, "making a bearer of", "tokens", -EINVAL,
                                    "options.open has an empty name: it is \"pkg.Service\" or "
                                    "\"pkg.Service/Method\", several separated by commas");
    }
    if (options->context != NULL && (options->file != NULL) != calls_back) {
        return 0;
    }
    return bow__transport_error(options->error, "making a bearer of",
                                options->file != NULL ? options->file : "tokens", -EINVAL,
                                "set options.context, and either options.file or a callback");
}

/* Returns whether there was memory. */
static bool copy_text(struct bow_context *context, const char *text, const char **ret_copy)
{
    *ret_copy = text != NULL ? bow__dup(context, text, strlen(text)) : NULL;
    return text == NULL || *ret_copy != NULL;
}

static int make(const struct bow_bearer_options *options, struct bow_bearer **ret_bearer)
{
    struct bow_context *context = options->context;
    struct bow_bearer *bearer = bow__alloc_zero(context, sizeof(*bearer));

    if (bearer == NULL) {
        return -ENOMEM;
    }
    bearer->context = bow_context_ref(context);
    bearer->options = *options;
    bearer->options.error = NULL;
    bearer->options.file = NULL;
    bearer->options.open = NULL;
    atomic_init(&bearer->refs, 1);
    pthread_mutex_init(&bearer->lock, NULL);
    if (!copy_text(context, options->file, &bearer->options.file) ||
        !copy_text(context, options->open, &bearer->options.open)) {
        destroy(bearer);
        return -ENOMEM;
    }
    *ret_bearer = bearer;
    return 0;
}

int bow_bearer_new(const struct bow_bearer_options *options, struct bow_bearer **ret_bearer)
{
    struct bow_bearer_options known = BOW_BEARER_OPTIONS_INIT;
    struct bow_bearer *bearer = NULL;

    int rc = bow__options_read(&known, sizeof(known), options);
    if (rc < 0) {
        return options != NULL && options->size == 0
                   ? bow__transport_error(options->error, "making a bearer of", "tokens", rc,
                                          "begin the options with BOW_BEARER_OPTIONS_INIT")
                   : rc;
    }
    rc = check_options(&known);
    if (rc < 0) {
        return rc;
    }
    rc = make(&known, &bearer);
    if (rc < 0) {
        return bow__transport_error(known.error, "making a bearer of", "tokens", rc, NULL);
    }
    if (bearer->options.file != NULL) {
        rc = bow__tokens_read(&bearer->tokens, bearer->context, bearer->options.file, known.error);
    }
    if (rc < 0) {
        bow_bearer_unref(bearer);
        return rc;
    }
    *ret_bearer = bearer;
    return 0;
}

int bow_bearer_reload(struct bow_bearer *bearer, struct bow_transport_error *error)
{
    struct bow__tokens fresh = {0};

    if (bearer->options.file == NULL) {
        return 0;
    }
    if (is_foreign(bearer)) {
        return bow__transport_error(error, "reading tokens again of", bearer->options.file, -ECHILD,
                                    "they were used before fork(), by the parent process");
    }
    int rc = bow__tokens_read(&fresh, bearer->context, bearer->options.file, error);
    if (rc < 0) {
        return rc;
    }
    (void)lock(bearer);
    struct bow__tokens before = bearer->tokens;
    bearer->tokens = fresh;
    pthread_mutex_unlock(&bearer->lock);
    bow__tokens_fini(&before, bearer->context);
    return 0;
}

/* A server's */

/* Two could be two opinions of who calls. */
static size_t find_all(const struct bow_metadata *metadata, struct bow_slice *ret_value)
{
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        if (strcmp(metadata->entries[i].key, KEY) == 0) {
            *ret_value = metadata->entries[i].value;
            n++;
        }
    }
    return n;
}

/* Returns NULL with the token, or what is wrong. The scheme's case does not matter (RFC 9110). */
static const char *find_token(const struct bow_metadata *metadata, struct bow_slice *ret_token)
{
    const size_t n_scheme = strlen(SCHEME);
    struct bow_slice value = {NULL, 0};

    size_t n = find_all(metadata, &value);
    if (n == 0) {
        return "needs a token: send the metadata \"" KEY ": " SCHEME "TOKEN\"";
    }
    if (n > 1) {
        return "takes one \"" KEY "\", and several came";
    }
    if (value.len < n_scheme || strncasecmp((const char *)value.data, SCHEME, n_scheme) != 0) {
        return "takes an \"" KEY "\" of the form \"" SCHEME "TOKEN\" only";
    }
    *ret_token = (struct bow_slice){value.data + n_scheme, value.len - n_scheme};
    return bow__token_is_valid((const char *)ret_token->data, ret_token->len)
               ? NULL
               : "was sent something in \"" KEY "\" that is no token";
}

static int set_subject(struct bow_interception *at, struct bow_slice subject)
{
    struct checked *checked = bow_interception_state(at);
    char *copy = bow_interception_alloc(at, subject.len + 1);

    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(copy, subject.data, subject.len);
    copy[subject.len] = '\0';
    checked->subject = copy;
    return 0;
}

int bow_bearer_set_subject(struct bow_interception *at, const char *subject)
{
    size_t len = strlen(subject);

    if (at->key != subject_key || !bow__subject_is_valid(subject, len)) {
        return bow__refuse(at->it->arena->context, -EINVAL, "bow_bearer_set_subject: %s",
                           at->key != subject_key
                               ? "only inside options.check of a bearer"
                               : "the subject is empty, not UTF-8 without control characters, or "
                                 "has BOW_BEARER_SUBJECT_BYTES");
    }
    return set_subject(at, (struct bow_slice){(const uint8_t *)subject, len});
}

const char *bow_bearer_subject(const struct bow_call *call)
{
    const struct checked *checked = bow_call_state(call, subject_key);

    return checked != NULL ? checked->subject : NULL;
}

/* Returns NULL, or what is wrong. */
static const char *look_up(struct bow_bearer *bearer, struct bow_interception *at,
                           struct bow_slice token)
{
    struct bow_slice subject = {NULL, 0};
    int rc = 0;

    /* Without a file, made for a client, there are none. The subject is the file's. */
    if (lock(bearer) < 0) {
        return "was sent a token, and the accepted ones are the parent process's, who used them "
               "before fork()";
    }
    bool accepted = bow__tokens_have(&bearer->tokens, token, &subject);
    if (subject.len > 0) {
        rc = set_subject(at, subject);
    }
    pthread_mutex_unlock(&bearer->lock);
    if (!accepted) {
        return NOT_ACCEPTED;
    }
    return rc < 0 ? "was sent a token, and there is no memory for whose it is" : NULL;
}

static const char *find_wrong(struct bow_bearer *bearer, struct bow_interception *at)
{
    struct bow_metadata metadata = bow_interception_metadata(at);
    struct bow_slice token = {NULL, 0};

    const char *wrong = find_token(&metadata, &token);
    if (wrong != NULL) {
        return wrong;
    }
    if (bearer->options.check == NULL) {
        return look_up(bearer, at, token);
    }
    return bearer->options.check(at, token, bearer->options.user) ? NULL : NOT_ACCEPTED;
}

/* `name`: "pkg.Service" or "pkg.Service/Method". */
static bool is_named(const char *path, struct bow_slice name)
{
    const char *method = path + 1;

    return strncmp(method, (const char *)name.data, name.len) == 0 &&
           (method[name.len] == '/' || method[name.len] == '\0');
}

static bool is_open(const struct bow_bearer *bearer, const char *path)
{
    const char *at = bearer->options.open;

    while (at != NULL) {
        struct bow_slice name = {(const uint8_t *)at, strcspn(at, ",")};
        if (is_named(path, name)) {
            return true;
        }
        at = at[name.len] == ',' ? at + name.len + 1 : NULL;
    }
    return false;
}

static void check(struct bow_interception *at, void *user)
{
    const char *wrong =
        is_open(user, bow_interception_method(at)->path) ? NULL : find_wrong(user, at);

    if (wrong != NULL) {
        (void)bow_interception_refuse(at, BOW_UNAUTHENTICATED, "%s %s",
                                      bow_interception_method(at)->path, wrong);
    }
}

/* A client's */

/* Returns 0 with a token in `ret_token`, or why there is none. */
static int get_token(struct bow_bearer *bearer, struct bow_interception *at, char *ret_token,
                     size_t size)
{
    int rc = 0;

    if (bearer->options.get != NULL) {
        rc = bearer->options.get(at, ret_token, size, bearer->options.user);
        ret_token[size - 1] = '\0';
    } else if (bearer->options.file != NULL) {
        if (lock(bearer) < 0) {
            return -ECHILD;
        }
        (void)snprintf(ret_token, size, "%s", bow__tokens_first(&bearer->tokens));
        pthread_mutex_unlock(&bearer->lock);
    } else {
        rc = -ENODATA; /* made with the callback of a server */
    }
    return rc == 0 && !bow__token_is_valid(ret_token, strlen(ret_token)) ? -EINVAL : rc;
}

static void refuse_for_error(struct bow_interception *at, int rc)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_errno(&text, rc);
    (void)bow_interception_refuse(at, BOW_UNAUTHENTICATED, "no token to send with the call: %s%s",
                                  text.bytes,
                                  rc == -EINVAL ? ": it is empty, or has a character that no token "
                                                  "has, as a blank or a line feed"
                                                : "");
}

static void send_along(struct bow_interception *at, void *user)
{
    char value[sizeof(SCHEME) - 1 + BOW_BEARER_TOKEN_BYTES];
    struct bow_bearer *bearer = user;
    const size_t n_scheme = strlen(SCHEME);

    if (!bow_interception_is_secure(at) && !bearer->options.plaintext) {
        (void)bow_interception_refuse(
            at, BOW_UNAUTHENTICATED,
            "a token is not sent over a connection that is not secured; set the client's "
            "options.security, or plaintext of the bearer's options to allow that");
        return;
    }
    memcpy(value, SCHEME, sizeof(SCHEME));
    int rc = get_token(bearer, at, value + n_scheme, BOW_BEARER_TOKEN_BYTES);
    if (rc == 0) {
        struct bow_slice slice = {(const uint8_t *)value, strlen(value)};
        rc = bow_interception_add_request(at, KEY, slice);
    }
    explicit_bzero(value, sizeof(value));
    if (rc < 0) {
        refuse_for_error(at, rc);
    }
}

/* As interceptors */

static void release(void *user)
{
    bow_bearer_unref(user);
}

static void fill(struct bow_bearer *bearer, const char *name,
                 void (*on_start)(struct bow_interception *at, void *user),
                 struct bow_interceptor *ret_interceptor)
{
    *ret_interceptor = (struct bow_interceptor)BOW_INTERCEPTOR_INIT;
    ret_interceptor->name = name;
    ret_interceptor->on_start = on_start;
    ret_interceptor->release = release;
    ret_interceptor->user = bow_bearer_ref(bearer);
}

void bow_bearer_check(struct bow_bearer *bearer, struct bow_interceptor *ret_check)
{
    fill(bearer, "bearer token", check, ret_check);
    ret_check->state_bytes = sizeof(struct checked);
    ret_check->state_key = subject_key;
}

void bow_bearer_send(struct bow_bearer *bearer, struct bow_interceptor *ret_send)
{
    fill(bearer, "bearer token", send_along, ret_send);
}
