/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An etcd for tests. See the header. */

#include "fake_etcd.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who is gone gets nothing. */
static void ignore(int rc)
{
    (void)rc;
}

static void copy(char *to, ProtobufCBinaryData from)
{
    assert(from.len < FAKE_TEXT);
    if (from.len > 0) {
        memcpy(to, from.data, from.len);
    }
    to[from.len] = '\0';
}

static ProtobufCBinaryData bytes(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static bool is_in(const char *key, const char *from, const char *end)
{
    return *end == '\0' ? strcmp(key, from) == 0 : strcmp(key, from) >= 0 && strcmp(key, end) < 0;
}

/* Refusals */

static bool has_token(const struct fake_etcd *etcd, struct bow_call *call)
{
    const struct bow_metadata *metadata = bow_call_metadata(call);

    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        if (strcmp(entry->key, "token") == 0) {
            return entry->value.len == strlen(etcd->token) &&
                   memcmp(entry->value.data, etcd->token, entry->value.len) == 0;
        }
    }
    return false;
}

/* Returns whether the call is over. */
static bool refuses(struct fake_etcd *etcd, struct bow_call *call)
{
    if (etcd->n_to_fail > 0) {
        etcd->n_to_fail--;
        (void)bow_call_fail(call, etcd->code, "%s", etcd->message);
        return true;
    }
    if (etcd->token != NULL && !has_token(etcd, call)) {
        (void)bow_call_fail(call, BOW_UNAUTHENTICATED, "etcdserver: invalid auth token");
        return true;
    }
    return false;
}

/* Watches */

static void fill_kv(Bow__Etcd__KeyValue *kv, const struct fake_key *key, bool is_delete)
{
    *kv = (Bow__Etcd__KeyValue)BOW__ETCD__KEY_VALUE__INIT;
    kv->key = bytes(key->key);
    kv->mod_revision = key->changed;
    if (!is_delete) {
        kv->value = bytes(key->value);
        kv->create_revision = key->created;
        kv->lease = key->lease;
    }
}

static void send_event(struct fake_watch *watch, const struct fake_event *event, bool is_fragment)
{
    Bow__Etcd__ResponseHeader header = BOW__ETCD__RESPONSE_HEADER__INIT;
    Bow__Etcd__WatchResponse response = BOW__ETCD__WATCH_RESPONSE__INIT;
    Bow__Etcd__Event sent = BOW__ETCD__EVENT__INIT;
    Bow__Etcd__Event *list[] = {&sent};
    Bow__Etcd__KeyValue kv;

    if (!watch->is_created || !is_in(event->key.key, watch->key, watch->end)) {
        return;
    }
    fill_kv(&kv, &event->key, event->is_delete);
    sent.kv = &kv;
    sent.type =
        event->is_delete ? BOW__ETCD__EVENT__EVENT_TYPE__DELETE : BOW__ETCD__EVENT__EVENT_TYPE__PUT;
    header.revision = watch->etcd->revision;
    response.header = &header;
    response.n_events = 1;
    response.events = list;
    response.fragment = is_fragment;
    ignore(bow__etcd__watch__watch__send(watch->call, &response));
}

static void send_plain(struct fake_watch *watch, bool is_created, int64_t compact_revision,
                       const char *reason)
{
    Bow__Etcd__ResponseHeader header = BOW__ETCD__RESPONSE_HEADER__INIT;
    Bow__Etcd__WatchResponse response = BOW__ETCD__WATCH_RESPONSE__INIT;

    header.revision = watch->etcd->revision;
    response.header = &header;
    response.created = is_created;
    response.canceled = reason != NULL;
    response.compact_revision = compact_revision;
    response.cancel_reason = reason != NULL ? reason : "";
    ignore(bow__etcd__watch__watch__send(watch->call, &response));
}

static void on_create(struct bow__etcd__watch__watch__call call,
                      const Bow__Etcd__WatchRequest *request, void *user)
{
    struct fake_watch *watch = user;
    struct fake_etcd *etcd = watch->etcd;
    const Bow__Etcd__WatchCreateRequest *create = request->create_request;

    (void)call;
    if (etcd->is_silent) {
        return;
    }
    copy(watch->key, create->key);
    copy(watch->end, create->range_end);
    etcd->n_watches++;
    watch->is_created = true;
    send_plain(watch, true, 0, NULL);
    if (create->start_revision <= etcd->compacted) {
        watch->is_created = false;
        send_plain(watch, false, etcd->compacted, "mvcc: required revision has been compacted");
        return;
    }
    for (int i = 0; i < etcd->n_events; i++) {
        if (etcd->events[i].key.changed >= create->start_revision) {
            send_event(watch, &etcd->events[i], false);
        }
    }
}

static void on_watch_closed(struct bow__etcd__watch__watch__call call,
                            const struct bow_status *status, void *user)
{
    struct fake_watch *watch = user;

    (void)call;
    (void)status;
    watch->call.call = NULL;
    watch->is_created = false;
}

static void on_watch(struct bow__etcd__watch__watch__call call, void *user)
{
    static const struct bow__etcd__watch__watch__call_events events = {
        .on_message = on_create,
        .on_closed = on_watch_closed,
    };
    struct fake_etcd *etcd = user;

    if (refuses(etcd, call.call)) {
        return;
    }
    for (int i = 0; i < FAKE_WATCHES; i++) {
        struct fake_watch *watch = &etcd->watches[i];
        if (watch->call.call == NULL) {
            *watch = (struct fake_watch){.call = call, .etcd = etcd};
            (void)bow__etcd__watch__watch__listen(call, &events, watch);
            return;
        }
    }
    abort();
}

static void tell(struct fake_etcd *etcd, int from)
{
    for (int i = 0; i < FAKE_WATCHES; i++) {
        for (int k = from; k < etcd->n_events; k++) {
            send_event(&etcd->watches[i], &etcd->events[k],
                       etcd->fragments && k + 1 < etcd->n_events);
        }
    }
}

/* Keys */

static struct fake_key *find(struct fake_etcd *etcd, const char *key)
{
    for (int i = 0; i < etcd->n_keys; i++) {
        if (strcmp(etcd->keys[i].key, key) == 0) {
            return &etcd->keys[i];
        }
    }
    return NULL;
}

static void note(struct fake_etcd *etcd, const struct fake_key *key, bool is_delete)
{
    assert(etcd->n_events < FAKE_EVENTS);
    etcd->events[etcd->n_events++] = (struct fake_event){is_delete, *key};
}

static struct fake_key *insert(struct fake_etcd *etcd, const char *name)
{
    int i = 0;

    assert(etcd->n_keys < FAKE_KEYS);
    while (i < etcd->n_keys && strcmp(etcd->keys[i].key, name) < 0) {
        i++;
    }
    memmove(&etcd->keys[i + 1], &etcd->keys[i],
            (size_t)(etcd->n_keys - i) * sizeof(struct fake_key));
    etcd->n_keys++;
    etcd->keys[i] = (struct fake_key){.created = etcd->revision};
    (void)snprintf(etcd->keys[i].key, FAKE_TEXT, "%s", name);
    return &etcd->keys[i];
}

static void put(struct fake_etcd *etcd, const char *name, const char *value, int64_t lease)
{
    struct fake_key *key = find(etcd, name);

    etcd->revision++;
    key = key != NULL ? key : insert(etcd, name);
    (void)snprintf(key->value, FAKE_TEXT, "%s", value);
    key->changed = etcd->revision;
    key->lease = lease;
    note(etcd, key, false);
}

static void take_out(struct fake_etcd *etcd, struct fake_key *key)
{
    key->changed = etcd->revision;
    note(etcd, key, true);
    etcd->n_keys--;
    memmove(key, key + 1, (size_t)(&etcd->keys[etcd->n_keys] - key) * sizeof(*key));
}

void fake_etcd_put(struct fake_etcd *etcd, const char *key, const char *value)
{
    put(etcd, key, value, 0);
    tell(etcd, etcd->n_events - 1);
}

void fake_etcd_delete(struct fake_etcd *etcd, const char *key)
{
    etcd->revision++;
    take_out(etcd, find(etcd, key));
    tell(etcd, etcd->n_events - 1);
}

void fake_etcd_delete_two(struct fake_etcd *etcd, const char *key, const char *other)
{
    etcd->revision++;
    take_out(etcd, find(etcd, key));
    take_out(etcd, find(etcd, other));
    tell(etcd, etcd->n_events - 2);
}

static bool forget_lease(struct fake_etcd *etcd, int64_t lease)
{
    for (int i = 0; i < FAKE_LEASES; i++) {
        if (etcd->leases[i] == lease) {
            etcd->leases[i] = 0;
            return true;
        }
    }
    return false;
}

static bool has_lease(const struct fake_etcd *etcd, int64_t lease)
{
    for (int i = 0; i < FAKE_LEASES; i++) {
        if (etcd->leases[i] == lease) {
            return true;
        }
    }
    return false;
}

void fake_etcd_expire(struct fake_etcd *etcd, int64_t lease)
{
    int before = etcd->n_events;

    (void)forget_lease(etcd, lease);
    etcd->revision++;
    for (int i = etcd->n_keys - 1; i >= 0; i--) {
        if (etcd->keys[i].lease == lease) {
            take_out(etcd, &etcd->keys[i]);
        }
    }
    tell(etcd, before);
}

void fake_etcd_compact(struct fake_etcd *etcd)
{
    etcd->compacted = etcd->revision;
}

void fake_etcd_progress(struct fake_etcd *etcd)
{
    for (int i = 0; i < FAKE_WATCHES; i++) {
        if (etcd->watches[i].is_created) {
            send_plain(&etcd->watches[i], false, 0, NULL);
        }
    }
}

void fake_etcd_end_watches(struct fake_etcd *etcd, enum bow_code code)
{
    for (int i = 0; i < FAKE_WATCHES; i++) {
        if (etcd->watches[i].call.call != NULL) {
            (void)bow_call_fail(etcd->watches[i].call.call, code, "ended by the test");
        }
    }
}

void fake_etcd_cancel_watches(struct fake_etcd *etcd, const char *reason)
{
    for (int i = 0; i < FAKE_WATCHES; i++) {
        if (etcd->watches[i].is_created) {
            etcd->watches[i].is_created = false;
            send_plain(&etcd->watches[i], false, 0, reason);
        }
    }
}

const char *fake_etcd_get(const struct fake_etcd *etcd, const char *key)
{
    const struct fake_key *found = find((struct fake_etcd *)(uintptr_t)etcd, key);

    return found != NULL ? found->value : NULL;
}

int fake_etcd_n_watches(const struct fake_etcd *etcd)
{
    int n = 0;

    for (int i = 0; i < FAKE_WATCHES; i++) {
        n += etcd->watches[i].is_created;
    }
    return n;
}

/* Requests of keys */

struct page {
    Bow__Etcd__RangeResponse response;
    Bow__Etcd__ResponseHeader header;
    Bow__Etcd__KeyValue kvs[FAKE_KEYS];
    Bow__Etcd__KeyValue *list[FAKE_KEYS];
};

static bool is_wanted(const struct fake_key *key, const Bow__Etcd__RangeRequest *request,
                      const char *from, const char *end)
{
    return is_in(key->key, from, end) &&
           (request->max_create_revision == 0 || key->created <= request->max_create_revision);
}

/* In the order of keys; or the youngest one. */
static void range(struct fake_etcd *etcd, const Bow__Etcd__RangeRequest *request, struct page *page)
{
    char from[FAKE_TEXT];
    char end[FAKE_TEXT];
    int64_t limit = request->limit > 0 ? request->limit : FAKE_KEYS;
    bool is_youngest = request->sort_order == BOW__ETCD__RANGE_REQUEST__SORT_ORDER__DESCEND;
    size_t n = 0;

    page->response = (Bow__Etcd__RangeResponse)BOW__ETCD__RANGE_RESPONSE__INIT;
    page->header = (Bow__Etcd__ResponseHeader)BOW__ETCD__RESPONSE_HEADER__INIT;
    copy(from, request->key);
    copy(end, request->range_end);
    for (int i = 0; i < etcd->n_keys; i++) {
        if (!is_wanted(&etcd->keys[i], request, from, end)) {
            continue;
        }
        if (n == (size_t)limit && !is_youngest) {
            page->response.more = true;
            break;
        }
        if (is_youngest && n == 1) {
            n -= etcd->keys[i].created > page->kvs[0].create_revision;
        }
        if (n < (size_t)limit) {
            fill_kv(&page->kvs[n], &etcd->keys[i], false);
            page->list[n] = &page->kvs[n];
            n++;
        }
    }
    page->header.revision = etcd->revision;
    page->response.header = &page->header;
    page->response.n_kvs = n;
    page->response.kvs = page->list;
}

static void on_range(struct bow_call *call, const Bow__Etcd__RangeRequest *request, void *user)
{
    static struct page page;
    struct fake_etcd *etcd = user;

    etcd->n_ranges++;
    if (refuses(etcd, call)) {
        return;
    }
    if (request->revision != 0 && request->revision < etcd->compacted) {
        (void)bow_call_fail(call, BOW_OUT_OF_RANGE,
                            "etcdserver: mvcc: required revision has been compacted");
        return;
    }
    range(etcd, request, &page);
    (void)bow__etcd__kv__range__reply(call, &page.response);
}

static bool put_for(struct fake_etcd *etcd, struct bow_call *call,
                    const Bow__Etcd__PutRequest *request)
{
    char key[FAKE_TEXT];
    char value[FAKE_TEXT];

    if (request->lease != 0 && !has_lease(etcd, request->lease)) {
        (void)bow_call_fail(call, BOW_NOT_FOUND, "etcdserver: requested lease not found");
        return false;
    }
    copy(key, request->key);
    copy(value, request->value);
    etcd->n_puts++;
    put(etcd, key, value, request->lease);
    return true;
}

static void on_put(struct bow_call *call, const Bow__Etcd__PutRequest *request, void *user)
{
    struct fake_etcd *etcd = user;
    Bow__Etcd__PutResponse response = BOW__ETCD__PUT_RESPONSE__INIT;
    Bow__Etcd__ResponseHeader header = BOW__ETCD__RESPONSE_HEADER__INIT;

    if (!refuses(etcd, call) && put_for(etcd, call, request)) {
        header.revision = etcd->revision;
        response.header = &header;
        (void)bow__etcd__kv__put__reply(call, &response);
        tell(etcd, etcd->n_events - 1);
    }
}

static void on_txn(struct bow_call *call, const Bow__Etcd__TxnRequest *request, void *user)
{
    static struct page pages[2];
    struct fake_etcd *etcd = user;
    Bow__Etcd__ResponseHeader header = BOW__ETCD__RESPONSE_HEADER__INIT;
    Bow__Etcd__TxnResponse response = BOW__ETCD__TXN_RESPONSE__INIT;
    Bow__Etcd__ResponseOp ops[2] = {BOW__ETCD__RESPONSE_OP__INIT, BOW__ETCD__RESPONSE_OP__INIT};
    Bow__Etcd__ResponseOp *list[] = {&ops[0], &ops[1]};
    Bow__Etcd__PutResponse put_response = BOW__ETCD__PUT_RESPONSE__INIT;
    int before = etcd->n_events;
    char key[FAKE_TEXT];

    if (refuses(etcd, call)) {
        return;
    }
    response.succeeded = true;
    for (size_t i = 0; i < request->n_compare; i++) { /* is the key to be made? */
        copy(key, request->compare[i]->key);
        response.succeeded = find(etcd, key) == NULL;
    }
    size_t n = response.succeeded ? request->n_success : request->n_failure;
    for (size_t i = 0; i < n; i++) {
        const Bow__Etcd__RequestOp *op =
            response.succeeded ? request->success[i] : request->failure[i];
        if (op->request_case == BOW__ETCD__REQUEST_OP__REQUEST_REQUEST_PUT) {
            if (!put_for(etcd, call, op->request_put)) {
                return;
            }
            ops[i].response_case = BOW__ETCD__RESPONSE_OP__RESPONSE_RESPONSE_PUT;
            ops[i].response_put = &put_response;
        } else {
            range(etcd, op->request_range, &pages[i]);
            ops[i].response_case = BOW__ETCD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE;
            ops[i].response_range = &pages[i].response;
        }
    }
    header.revision = etcd->revision;
    response.header = &header;
    response.n_responses = n;
    response.responses = list;
    (void)bow__etcd__kv__txn__reply(call, &response);
    tell(etcd, before);
}

/* Leases */

static void on_grant(struct bow_call *call, const Bow__Etcd__LeaseGrantRequest *request, void *user)
{
    struct fake_etcd *etcd = user;
    Bow__Etcd__LeaseGrantResponse response = BOW__ETCD__LEASE_GRANT_RESPONSE__INIT;
    int i = 0;

    if (refuses(etcd, call)) {
        return;
    }
    while (etcd->leases[i] != 0) {
        i++;
        assert(i < FAKE_LEASES);
    }
    etcd->n_grants++;
    etcd->leases[i] = ++etcd->next_lease;
    response.id = etcd->leases[i];
    response.ttl = request->ttl;
    (void)bow__etcd__lease__lease_grant__reply(call, &response);
}

static void on_revoke(struct bow_call *call, const Bow__Etcd__LeaseRevokeRequest *request,
                      void *user)
{
    struct fake_etcd *etcd = user;
    Bow__Etcd__LeaseRevokeResponse response = BOW__ETCD__LEASE_REVOKE_RESPONSE__INIT;

    if (refuses(etcd, call)) {
        return;
    }
    etcd->n_revokes++;
    fake_etcd_expire(etcd, request->id);
    (void)bow__etcd__lease__lease_revoke__reply(call, &response);
}

static void on_renewal(struct bow__etcd__lease__lease_keep_alive__call call,
                       const Bow__Etcd__LeaseKeepAliveRequest *request, void *user)
{
    struct fake_etcd *etcd = user;
    Bow__Etcd__LeaseKeepAliveResponse response = BOW__ETCD__LEASE_KEEP_ALIVE_RESPONSE__INIT;

    etcd->n_renewals++;
    response.id = request->id;
    response.ttl = has_lease(etcd, request->id) ? 9 : 0;
    if (!etcd->is_silent) {
        ignore(bow__etcd__lease__lease_keep_alive__send(call, &response));
    }
}

static void on_keep_alive(struct bow__etcd__lease__lease_keep_alive__call call, void *user)
{
    static const struct bow__etcd__lease__lease_keep_alive__call_events events = {
        .on_message = on_renewal,
    };

    if (!refuses(user, call.call)) {
        (void)bow__etcd__lease__lease_keep_alive__listen(call, &events, user);
    }
}

/* Users */

static void on_authenticate(struct bow_call *call, const Bow__Etcd__AuthenticateRequest *request,
                            void *user)
{
    struct fake_etcd *etcd = user;
    Bow__Etcd__AuthenticateResponse response = BOW__ETCD__AUTHENTICATE_RESPONSE__INIT;

    etcd->n_logins++;
    for (size_t i = 0; i < bow_call_metadata(call)->n; i++) {
        if (strcmp(bow_call_metadata(call)->entries[i].key, "token") == 0) {
            (void)bow_call_fail(call, BOW_UNAUTHENTICATED, "etcdserver: invalid auth token");
            return;
        }
    }
    if (etcd->password == NULL || strcmp(request->password, etcd->password) != 0) {
        (void)bow_call_fail(call, BOW_INVALID_ARGUMENT,
                            "etcdserver: authentication failed, invalid user ID or password");
        return;
    }
    response.token = etcd->token;
    (void)bow__etcd__auth__authenticate__reply(call, &response);
}

/* Life */

static int serve(struct bow_server *server, void *user)
{
    static const struct bow__etcd__kv__handlers kv = {
        .range = on_range, .put = on_put, .txn = on_txn};
    static const struct bow__etcd__watch__handlers watch = {.watch = on_watch};
    static const struct bow__etcd__lease__handlers lease = {
        .lease_grant = on_grant, .lease_revoke = on_revoke, .lease_keep_alive = on_keep_alive};
    static const struct bow__etcd__auth__handlers auth = {.authenticate = on_authenticate};

    int rc = bow__etcd__kv__serve(server, &kv, user);
    rc = rc == 0 ? bow__etcd__watch__serve(server, &watch, user) : rc;
    rc = rc == 0 ? bow__etcd__lease__serve(server, &lease, user) : rc;
    return rc == 0 ? bow__etcd__auth__serve(server, &auth, user) : rc;
}

int fake_etcd_start(struct fake_etcd *etcd, struct bow_test *test)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;

    memset(etcd, 0, sizeof(*etcd));
    etcd->test = test;
    etcd->revision = 1;
    etcd->next_lease = 1000;
    etcd->message = "";
    options.serve = serve;
    options.user = etcd;
    options.grpc = true;
    return bow_test_pair_new(test, &options, &etcd->pair);
}

void fake_etcd_stop(struct fake_etcd *etcd)
{
    bow_test_pair_free(etcd->test, etcd->pair);
    etcd->pair = NULL;
}

struct bow_etcd_options fake_etcd_options(struct fake_etcd *etcd)
{
    struct bow_etcd_options options = BOW_ETCD_OPTIONS_INIT;

    options.context = bow_test_context(etcd->test);
    options.target = etcd->pair->target;
    options.loop = bow_test_loop(etcd->test);
    return options;
}
