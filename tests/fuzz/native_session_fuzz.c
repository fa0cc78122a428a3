/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A native session fed with anything. The first byte says which side it is and
 * whether the opening is already behind it, the second seeds what its host does;
 * the rest is fed in one piece and in many, which must bring the same events, and
 * once more with output taken out and time going on meanwhile, which ends calls earlier.
 * The host says several messages, ends its side or not, reads or does not. No event may
 * come after a stream's last, none is writable then; all memory must come back.
 */
#include "rpc/native/session.h"
#include "tests/rpc/feed_in_turns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BLOCK ((size_t)70000)
#define N_KEYS 64
/* What a run may cost, so that there are many: the host's words in large, and steps in small. The
 * bytes fill a stream's window and the connection's; the steps cut several frames of each kind
 * at each place, and what is fed anew with each step is copied. */
#define HOST_BYTES (4 * MAX_BLOCK)
#define N_SMALL_STEPS 100
#define SMALL_STEP 40
#define LARGE_STEP 8000

struct host {
    struct bow_context *context;
    struct bow__pool pool;
    struct bow__session *session;
    bool server;
    bool draining;   /* after each feed */
    uint64_t random; /* of the host's own will: moved by events only */
    uint64_t splits;
    size_t n_steps;
    size_t bytes_left; /* of HOST_BYTES */
    uint64_t events;   /* hash of all that came */
    uint64_t now_ns;
    uint64_t keys[N_KEYS];
    bool ended[N_KEYS];
    size_t n_keys;
};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static uint64_t roll(uint64_t *state, uint64_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % n;
}

static void note(struct host *host, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < len; i++) {
        host->events = (host->events ^ at[i]) * UINT64_C(0x100000001b3);
    }
}

static void note_event(struct host *host, char kind, uint64_t key)
{
    note(host, &kind, 1);
    note(host, &key, sizeof(key));
}

/* The slot of a stream, which must not have ended. */
static bool *slot_of(struct host *host, uint64_t key)
{
    for (size_t i = 0; i < host->n_keys; i++) {
        if (host->keys[i] == key) {
            require(!host->ended[i]);
            return &host->ended[i];
        }
    }
    return NULL;
}

static void add_key(struct host *host, uint64_t key)
{
    if (host->n_keys < N_KEYS) {
        host->keys[host->n_keys++] = key;
    }
}

static void say(struct host *host, uint64_t key, uint32_t flags)
{
    static const size_t sizes[] = {0, 3, 20000, MAX_BLOCK};
    size_t len = sizes[roll(&host->random, 4)];
    size_t cap = 0;

    len = len <= host->bytes_left ? len : 3;
    host->bytes_left -= len <= host->bytes_left ? len : host->bytes_left;
    uint8_t *room = host->session->ops->reserve(host->session, key, flags, &cap);
    if (room != NULL && len <= cap) {
        memset(room, 7, len);
        require(host->session->ops->commit(host->session, key, flags, len) == 0);
        return;
    }
    struct bow__block *block = bow__block_new(host->context, len);
    require(block != NULL);
    memset(block->data, 7, len);
    if (host->session->ops->send(host->session, key, flags, block, 0, len) < 0) {
        bow__block_unref(block);
    }
}

static const struct bow_metadata_entry entries[] = {
    {"k", {(const uint8_t *)"v", 1}},
    {"a-bin", {(const uint8_t *)"\0\xff", 2}},
};

static struct bow_metadata some_metadata(struct host *host)
{
    return (struct bow_metadata){entries, (size_t)roll(&host->random, 3)};
}

/* It may come behind messages, so that is not the stream's end for the session. */
static void finish(struct host *host, uint64_t key)
{
    struct bow_status status = {.code = BOW_OK, .message = "", .metadata = some_metadata(host)};

    if (roll(&host->random, 2) == 0) {
        status.code = roll(&host->random, 2) == 0 ? BOW_ABORTED : BOW_DEADLINE_EXCEEDED;
        status.message = "no";
    }
    host->session->ops->finish(host->session, key, &status);
    require(host->session->ops->queued(host->session, key) == 0);
}

static void end_call(struct host *host, uint64_t key, bool *ended)
{
    if (!host->server) {
        host->session->ops->cancel(host->session, key, BOW_CANCELLED);
    } else if (roll(&host->random, 2) == 0) {
        finish(host, key);
    } else {
        say(host, key, BOW__SEND_END | BOW__SEND_COMPRESSED);
    }
    if (ended != NULL) {
        *ended = true;
    }
}

static void say_some(struct host *host, uint64_t key)
{
    size_t n = 1 + roll(&host->random, 4);

    for (size_t i = 0; i < n; i++) {
        say(host, key, roll(&host->random, 2) == 0 ? BOW__SEND_COMPRESSED : 0);
    }
    if (!host->server && roll(&host->random, 3) == 0) {
        host->session->ops->half_close(host->session, key);
    }
}

static void act(struct host *host, uint64_t key, bool *ended)
{
    switch (roll(&host->random, 6)) {
    case 0:
        end_call(host, key, ended);
        return;
    case 1:
    case 2:
        host->session->ops->consumed(host->session, key, 1 + roll(&host->random, 70000));
        return;
    case 3:
        say_some(host, key);
        return;
    default:
        return;
    }
}

static void note_metadata(struct host *host, const struct bow_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        require(entry->value.data[entry->value.len] == 0 && entry->key[0] != 0);
        note(host, entry->key, strlen(entry->key));
        note(host, entry->value.data, entry->value.len);
    }
}

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct host *host = owner;

    note_event(host, 'o', key);
    note(host, head->path.data, head->path.len);
    note(host, &head->time_left_ns, sizeof(head->time_left_ns));
    note(host, &head->encoding, sizeof(head->encoding));
    note_metadata(host, &head->metadata);
    add_key(host, key);
    if (roll(&host->random, 2) == 0) {
        struct bow_metadata metadata = some_metadata(host);
        enum bow__encoding encoding = (enum bow__encoding)roll(&host->random, BOW__N_ENCODINGS);
        require(host->session->ops->respond(host->session, key, &metadata, encoding) == 0);
    }
    act(host, key, slot_of(host, key));
    return host;
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end)
{
    struct host *host = owner;

    (void)stream;
    note_event(host, end ? 'M' : 'm', key);
    note(host, message->bytes.data, message->bytes.len);
    note(host, &message->encoding, sizeof(message->encoding));
    act(host, key, slot_of(host, key));
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    struct host *host = owner;

    (void)stream;
    note_event(host, 'h', key);
    act(host, key, slot_of(host, key));
}

static void on_headers(void *owner, uint64_t key, void *stream, const struct bow_metadata *metadata)
{
    struct host *host = owner;

    (void)stream;
    note_event(host, 'i', key);
    note_metadata(host, metadata);
    act(host, key, slot_of(host, key));
}

static void on_end(void *owner, uint64_t key, void *stream, const struct bow_status *status)
{
    struct host *host = owner;
    bool *ended = slot_of(host, key);

    (void)stream;
    note_event(host, 'e', key);
    note(host, &status->code, sizeof(status->code));
    require(strlen(status->message) < 8192);
    note_metadata(host, &status->metadata);
    if (ended != NULL) {
        *ended = true;
    }
}

static void on_ready(void *owner)
{
    (void)owner;
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    struct host *host = owner;

    note_event(host, 'g', (uint64_t)reason->code);
    note(host, reason->message, strlen(reason->message));
}

static const struct bow__session_events events = {
    .on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_headers = on_headers,
    .on_status = on_end,
    .on_reset = on_end,
    .on_ready = on_ready,
    .on_goaway = on_goaway,
};

/* Producers that go on, if their stream has not ended. */
static void go_on(struct host *host)
{
    uint64_t key = 0;

    for (int i = 0; i < 8; i++) {
        if (host->session->ops->take_writable(host->session, &key) == NULL) {
            return;
        }
        require(host->session->ops->queued(host->session, key) <= BOW__STREAM_LOW_BYTES);
        (void)slot_of(host, key);
        say_some(host, key);
    }
}

static void drain(struct host *host)
{
    struct iovec pieces[8];
    int n = host->session->ops->drain(host->session, pieces, 8);

    for (int round = 0; n > 0 && round < 100; round++) {
        size_t total = 0;
        for (int i = 0; i < n; i++) {
            total += pieces[i].iov_len;
        }
        host->session->ops->sent(host->session, total);
        n = host->session->ops->drain(host->session, pieces, 8);
    }
}

static void open_calls(struct host *host)
{
    for (uint64_t i = 0; i < 4; i++) {
        struct bow__request_head head = {
            .path = {(const uint8_t *)"/s/m", 4},
            .time_left_ns = BOW_NEVER,
            .path_key = i % 2,
            .metadata = some_metadata(host),
            .encoding = i == 2 ? BOW__ENCODING_ZSTD : BOW__ENCODING_IDENTITY,
        };
        uint64_t key = 0;
        require(host->session->ops->open(host->session, &head, host, &key) == 0);
        add_key(host, key);
        if (i == 3) {
            require(host->session->ops->begin(host->session, key) == 0);
            say_some(host, key);
        } else {
            say(host, key, i == 2 ? 0 : BOW__SEND_END);
        }
    }
}

/* One feed, of exactly the bytes there are. */
static ssize_t feed(struct host *host, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    require(copy != NULL);
    memcpy(copy, bytes, n);
    ssize_t used = feed_in_turns(host->session, copy, n, host->now_ns);
    free(copy);
    require(used <= (ssize_t)n);
    return used;
}

/* Small ones first, everywhere in a short input; then so large that a long one has an end. */
static size_t next_step(struct host *host)
{
    return 1 + roll(&host->splits, host->n_steps++ < N_SMALL_STEPS ? SMALL_STEP : LARGE_STEP);
}

/* The rest comes again with more behind it. */
static int feed_all(struct host *host, const uint8_t *bytes, size_t n)
{
    size_t at = 0;
    size_t end = 0;

    while (end < n) {
        size_t step = host->splits == 0 ? n : next_step(host);
        end = step < n - end ? end + step : n;
        ssize_t used = feed(host, bytes + at, end - at);
        if (used < 0) {
            require(host->session->failure.len > 0);
            return (int)used;
        }
        at += (size_t)used;
        if (host->draining) {
            drain(host);
            go_on(host);
            host->now_ns += 1000000;
        }
    }
    return 0;
}

static int run(struct host *host, uint8_t how, const uint8_t *bytes, size_t n)
{
    static const uint8_t opening[] = {0xB0, 'O', 'W', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "lost"};
    struct bow__session_options options = {
        .context = host->context,
        .pool = &host->pool,
        .events = &events,
        .owner = host,
        .server = host->server,
        .max_message_bytes = (how & 4) != 0 ? 1000 : (size_t)4 << 20,
        .max_calls = (how & 4) != 0 ? 3 : 100,
        .heartbeat_ns = BOW_NEVER,
        .encodings = 1u << BOW__ENCODING_ZSTD,
        .now_ns = 1000000000,
    };

    require(bow__native_session_new(&options, &host->session) == 0);
    if (!host->server) {
        open_calls(host);
    }
    if ((how & 2) == 0) {
        require(feed(host, opening, sizeof(opening)) == sizeof(opening));
    }
    if ((how & 8) != 0) {
        host->session->ops->goaway(host->session, &lost);
    }
    int rc = feed_all(host, bytes, n);
    drain(host);
    host->session->ops->fail(host->session, &lost);
    require(host->session->n_streams == 0);
    host->session->ops->free(host->session);
    return rc;
}

static int run_once(const uint8_t *data, size_t size, uint64_t splits, bool draining,
                    uint64_t *ret_events)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct host host = {
        .server = (data[0] & 1) != 0,
        .draining = draining,
        .random = data[1] + 1u,
        .splits = splits,
        .bytes_left = HOST_BYTES,
        .now_ns = 2000000000,
    };

    require(bow_context_new(&options, &host.context) == 0);
    bow__pool_init(&host.pool, host.context, 2);
    int rc = run(&host, data[0], data + 2, size - 2);
    bow__pool_fini(&host.pool);
    require(bow_context_bytes(host.context) == 0);
    bow_context_unref(host.context);
    *ret_events = host.events;
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t whole = 0;
    uint64_t split = 0;

    if (size < 2) {
        return 0;
    }
    uint64_t seed = size * 31 + data[1] + 1;
    int rc = run_once(data, size, 0, false, &whole);
    require(run_once(data, size, seed, false, &split) == rc);
    require(whole == split);
    (void)run_once(data, size, seed, true, &split);
    return 0;
}
