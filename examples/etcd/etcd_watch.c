/* SPDX-License-Identifier: 0BSD */
/*
 * Owns how far a watch is, and how it goes on. Knows nothing of who watches.
 *
 * Design: at any time one thing is under way, the timer, a unary call or the stream, and its end
 * begins the next. Whatever ends looks first whether the watch was stopped.
 *
 * A revision is one transaction and may have several changes. A reply has whole revisions, unless
 * it is marked as a fragment: then the next one may go on within the last. When the stream is lost
 * between the two, that revision is asked for again, and what was told of it is skipped.
 */

#include "etcd_watch.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAGE_KEYS 500
#define CALL_TIMEOUT_NS (UINT64_C(10) * 1000000000u)
#define PAUSE_MIN_NS (UINT64_C(100) * 1000000u)
#define PAUSE_MAX_NS (UINT64_C(2) * 1000000000u)

static const struct bow_status stopped = {.code = BOW_CANCELLED, .message = "stopped"};

static void begin_after(struct etcd_watch *watch, uint64_t delay_ns)
{
    bow_timer_start(&watch->timer, delay_ns);
}

static void end(struct etcd_watch *watch, const struct bow_status *status)
{
    bow_timer_stop(&watch->timer);
    etcd_pages_fini(&watch->pages);
    watch->events->on_closed(watch, watch->stopping ? &stopped : status, watch->user);
}

/* A call or stream ended so. */
static void go_on_after(struct etcd_watch *watch, const struct bow_status *status)
{
    enum etcd_remedy remedy = etcd_remedy(watch->etcd, status);

    if (watch->stopping || remedy == ETCD_GIVE_UP) {
        end(watch, status);
        return;
    }
    watch->lacks_token = watch->lacks_token || remedy == ETCD_LOG_IN;
    watch->pause_ns = watch->pause_ns == 0 ? PAUSE_MIN_NS : 2 * watch->pause_ns;
    if (watch->pause_ns > PAUSE_MAX_NS) {
        watch->pause_ns = PAUSE_MAX_NS;
    }
    begin_after(watch, watch->pause_ns);
    watch->events->on_interrupted(watch, status, watch->revision, watch->user);
}

static void read_state_anew(struct etcd_watch *watch, int64_t compact_revision)
{
    etcd_pages_rewind(&watch->pages);
    watch->compact_revision = compact_revision;
    watch->step = ETCD_WATCH_STATE;
    begin_after(watch, 0);
}

/* The state. */

static void tell_page(struct etcd_watch *watch, const Etcdserverpb__RangeResponse *page)
{
    if (etcd_pages_revision(&watch->pages) == 0) { /* the first */
        watch->events->on_state_begin(watch, watch->compact_revision, watch->user);
    }
    for (size_t i = 0; i < page->n_kvs && !watch->stopping; i++) {
        watch->events->on_state(watch, page->kvs[i], watch->user);
    }
}

static void on_page(struct bow_result *result, const Etcdserverpb__RangeResponse *page, void *user)
{
    struct etcd_watch *watch = user;

    watch->call = 0;
    if (page == NULL && result->status.code == BOW_OUT_OF_RANGE && !watch->stopping) {
        read_state_anew(watch, etcd_pages_revision(&watch->pages)); /* compacted between pages */
        return;
    }
    if (page == NULL || watch->stopping) {
        go_on_after(watch, &result->status);
        return;
    }
    watch->pause_ns = 0;
    tell_page(watch, page);
    int more = etcd_pages_turn(&watch->pages, page);
    if (more < 0) {
        struct bow_status status = {.code = BOW_INTERNAL, .message = "no memory for a page's end"};
        end(watch, &status);
        return;
    }
    if (more == 0) {
        watch->step = ETCD_WATCH_STREAM;
        watch->revision = etcd_pages_revision(&watch->pages);
        watch->next = watch->revision + 1;
        if (!watch->stopping) {
            watch->events->on_state_end(watch, watch->revision, watch->user);
        }
    }
    begin_after(watch, 0);
}

static int read_page(struct etcd_watch *watch)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.wait_for_ready = true;
    options.timeout_ns = CALL_TIMEOUT_NS;
    return etcdserverpb__kv__range__start(watch->etcd->client, &watch->pages.request, &options,
                                          on_page, watch, &watch->call);
}

/* The stream. */

static void tell_event(struct etcd_watch *watch, const Mvccpb__Event *event)
{
    int64_t revision = event->kv != NULL ? event->kv->mod_revision : 0;

    if (revision < watch->next) {
        return; /* not asked for */
    }
    if (revision == watch->revision && watch->n_skip > 0) {
        watch->n_skip--;
        return;
    }
    if (revision != watch->revision) {
        watch->n_told = 0;
        watch->n_skip = 0;
    }
    watch->n_told++;
    watch->revision = watch->next = revision;
    watch->events->on_event(watch, event, watch->user);
}

static void on_refused(struct etcd_watch *watch, const Etcdserverpb__WatchResponse *reply)
{
    snprintf(watch->reason, sizeof(watch->reason), "%s", reply->cancel_reason);
    watch->refusal = etcd_status_of(watch->reason);
    watch->refused = true;
    watch->compact_revision = reply->compact_revision;
    bow_stream_cancel(watch->stream.stream); /* the watch has ended, its stream would go on */
}

static void on_reply(struct etcdserverpb__watch__watch__stream stream,
                     const Etcdserverpb__WatchResponse *reply, void *user)
{
    struct etcd_watch *watch = user;

    (void)stream;
    if (watch->stopping || watch->refused) {
        return;
    }
    if (reply->canceled) {
        on_refused(watch, reply);
        return;
    }
    watch->pause_ns = 0;
    for (size_t i = 0; i < reply->n_events && !watch->stopping; i++) {
        tell_event(watch, reply->events[i]);
    }
    if (reply->fragment || reply->created) {
        return;
    }
    /* Without changes it says how far the server is. */
    bool is_progress =
        reply->n_events == 0 && reply->header != NULL && reply->header->revision >= watch->revision;
    if (is_progress) {
        watch->revision = reply->header->revision;
    }
    watch->next = watch->revision + 1;
    if (is_progress) {
        watch->events->on_progress(watch, watch->revision, watch->user);
    }
}

static void on_stream_closed(struct etcdserverpb__watch__watch__stream stream,
                             struct bow_result *result, void *user)
{
    static const struct bow_status ended = {.code = BOW_UNAVAILABLE,
                                            .message = "the server has ended the stream"};
    struct etcd_watch *watch = user;
    bool refused = watch->refused;

    bow_stream_unref(stream.stream);
    watch->stream.stream = NULL;
    watch->refused = false;
    if (refused && watch->compact_revision != 0 && !watch->stopping) {
        read_state_anew(watch, watch->compact_revision);
    } else if (refused) {
        go_on_after(watch, &watch->refusal);
    } else {
        go_on_after(watch, result->status.code == BOW_OK ? &ended : &result->status);
    }
}

static int ask(struct etcd_watch *watch)
{
    Etcdserverpb__WatchCreateRequest create = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
    Etcdserverpb__WatchRequest request = ETCDSERVERPB__WATCH_REQUEST__INIT;

    etcd_pages_rewind(&watch->pages);
    create.key = watch->pages.request.key;
    create.range_end = watch->pages.request.range_end;
    create.start_revision = watch->next;
    create.progress_notify = true;
    create.fragment = true;
    request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    request.create_request = &create;
    return etcdserverpb__watch__watch__stream_send(watch->stream, &request);
}

static int open_stream(struct etcd_watch *watch)
{
    static const struct etcdserverpb__watch__watch__stream_events events = {
        .on_message = on_reply,
        .on_closed = on_stream_closed,
    };
    /* A member that is cut off from the others ends the stream, instead of falling silent. */
    static const struct bow_metadata_entry entries[] = {
        {"hasleader", {(const uint8_t *)"true", 4}}};
    static const struct bow_metadata metadata = {entries, 1};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.wait_for_ready = true;
    options.metadata = &metadata;
    watch->n_skip = watch->next == watch->revision ? watch->n_told : 0;
    int rc = etcdserverpb__watch__watch__open(watch->etcd->client, &options, &events, watch,
                                              &watch->stream);
    if (rc == 0 && ask(watch) < 0) {
        bow_stream_cancel(watch->stream.stream); /* and its end tries again */
    }
    return rc;
}

/* The token. */

static void on_login(const struct bow_status *status, void *user)
{
    struct etcd_watch *watch = user;

    watch->call = 0;
    if (status->code != BOW_OK || watch->stopping) {
        go_on_after(watch, status);
        return;
    }
    watch->lacks_token = false;
    begin_after(watch, 0);
}

static int log_in(struct etcd_watch *watch)
{
    watch->login = (struct etcd_login){watch->etcd, on_login, watch};
    return etcd_login_start(&watch->login, &watch->call);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct etcd_watch *watch = user;
    int rc;

    (void)timer;
    if (watch->stopping) {
        end(watch, &stopped);
        return;
    }
    if (watch->lacks_token) {
        rc = log_in(watch);
    } else {
        rc = watch->step == ETCD_WATCH_STATE ? read_page(watch) : open_stream(watch);
    }
    if (rc < 0) {
        struct bow_status status = {.code = BOW_INTERNAL, .message = watch->reason};
        snprintf(watch->reason, sizeof(watch->reason), "a call cannot begin: %s", strerror(-rc));
        end(watch, &status);
    }
}

int etcd_watch_start(struct etcd_watch *watch, struct etcd *etcd, const char *prefix,
                     int64_t revision, const struct etcd_watch_events *events, void *user)
{
    *watch = (struct etcd_watch){
        .etcd = etcd,
        .events = events,
        .user = user,
        .step = revision == 0 ? ETCD_WATCH_STATE : ETCD_WATCH_STREAM,
        .revision = revision,
        .next = revision + 1,
    };
    int rc = etcd_pages_init(&watch->pages, prefix, PAGE_KEYS);
    if (rc < 0) {
        return rc;
    }
    bow_timer_init(&watch->timer, etcd->loop, on_timer, watch);
    begin_after(watch, 0);
    return 0;
}

void etcd_watch_stop(struct etcd_watch *watch)
{
    if (watch->stopping) {
        return;
    }
    watch->stopping = true;
    if (watch->call != 0) {
        bow_client_cancel(watch->etcd->client, watch->call);
    } else if (watch->stream.stream != NULL) {
        bow_stream_cancel(watch->stream.stream);
    } else {
        begin_after(watch, 0);
    }
}
