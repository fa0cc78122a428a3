/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A payload's compressed forms: made once, shared by who needs the same, each loop with coders of
 * its own. The session only notes what it is given.
 */

#include "protos/codec3.pb-c.h"
#include "rpc/core/compression/compression.h"
#include "rpc/core/message/message_queue.h"
#include "rpc/core/message/payload.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALL_BYTES = 65536, N_THREADS = 4, N_ROUNDS = 100 };

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    uint8_t *bytes;
};

/* One loop's: what it compresses with, and the session that it sends on. */
struct sender {
    struct bow__session session;
    struct bow__compression compression;
    uint32_t flags;
    struct bow__block *block; /* the last one sent */
    size_t len;
    int rc; /* what send() says */
};

static enum bow__encoding one_of_ours(void)
{
    return (bow__encodings_built() & 1u << BOW__ENCODING_ZSTD) != 0 ? BOW__ENCODING_ZSTD
                                                                    : BOW__ENCODING_GZIP;
}

static int note(struct bow__session *session, uint64_t key, uint32_t flags,
                struct bow__block *block, size_t offset, size_t len)
{
    struct sender *sender = session->owner;

    (void)key;
    assert_int_equal(offset, 0);
    if (sender->rc < 0) {
        return sender->rc;
    }
    bow__block_unref(sender->block);
    sender->flags = flags;
    sender->block = block;
    sender->len = len;
    return 0;
}

static const struct bow__session_ops note_ops = {.name = "note", .send = note};

static void sender_begin(struct sender *sender, struct bow_context *context)
{
    *sender = (struct sender){
        .session = {.ops = &note_ops, .owner = sender},
        .compression = {.threshold_bytes = 1024, .mode = BOW_COMPRESSION_AUTO},
    };
    bow__coders_init(&sender->compression.coders, context);
}

static void sender_end(struct sender *sender)
{
    sender->block = bow__block_unref(sender->block);
    bow__coders_trim(&sender->compression.coders);
}

static int give_encoded(struct sender *sender, struct bow_payload *payload,
                        enum bow__encoding encoding)
{
    size_t len = 0;
    struct bow__queued_message *held =
        bow__queued_message_share(sender->compression.coders.context, payload);

    assert_non_null(held);
    held->compression = (uint8_t)sender->compression.mode;
    int rc = bow__compression_send_queued(&sender->compression, &sender->session, 1, encoding,
                                          BOW__SEND_END, held, &len);
    assert_true(rc != 0 || len == sender->len);
    bow__queued_message_free(held);
    return rc;
}

static int give(struct sender *sender, struct bow_payload *payload)
{
    return give_encoded(sender, payload, one_of_ours());
}

static int setup(void **state)
{
    static struct fixture fixture;

    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    fixture.bytes = calloc(1, ALL_BYTES);
    assert_non_null(fixture.bytes);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *t = *state;

    free(t->bytes);
    test_context_end(t->context, &t->alloc);
    return 0;
}

static struct bow_payload *payload_of(struct fixture *t)
{
    Codec3__Scalars message = CODEC3__SCALARS__INIT;
    struct bow_payload *payload = NULL;

    message.f_bytes.data = t->bytes;
    message.f_bytes.len = ALL_BYTES;
    assert_int_equal(bow_payload_new(t->context, &message.base, &payload), 0);
    return payload;
}

static size_t n_allocated(const struct fixture *t)
{
    return atomic_load(&t->alloc.n_calls);
}

/* Tests */

static void expect_inflates_to(struct sender *sender, const struct bow_payload *payload)
{
    struct bow_slice bytes = bow__payload_bytes(payload);
    struct bow__block *block = NULL;
    struct bow__text reason;
    size_t len = 0;

    bow__text_clear(&reason);
    assert_int_equal(bow__inflate(&sender->compression.coders, one_of_ours(),
                                  (struct bow_slice){sender->block->data, sender->len}, bytes.len,
                                  &block, &len, &reason),
                     0);
    assert_int_equal(len, bytes.len);
    assert_memory_equal(block->data, bytes.data, len);
    bow__block_unref(block);
}

static void test_packing_payload_is_compressed_once(void **state)
{
    struct fixture *t = *state;
    struct bow_payload *payload = payload_of(t);
    struct sender senders[2];

    sender_begin(&senders[0], t->context);
    sender_begin(&senders[1], t->context);
    assert_int_equal(give(&senders[0], payload), 0);
    assert_int_equal(senders[0].flags, BOW__SEND_COMPRESSED | BOW__SEND_END);
    expect_inflates_to(&senders[0], payload);
    size_t before = n_allocated(t);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(give(&senders[1], payload), 0);
    }
    assert_ptr_equal(senders[1].block, senders[0].block);
    assert_int_equal(senders[1].len, senders[0].len);
    assert_int_equal(n_allocated(t) - before, 10); /* what waits, each time */
    assert_false(senders[1].compression.used);     /* it has no need of coders */
    struct bow_payload *same = payload_of(t);
    bow_payload_unref(payload);
    expect_inflates_to(&senders[1], same); /* what a session has lives on */
    bow_payload_unref(same);
    sender_end(&senders[0]);
    sender_end(&senders[1]);
}

static void test_packing_payload_has_a_form_for_each_level_and_encoding(void **state)
{
    struct fixture *t = *state;
    struct bow_payload *payload = payload_of(t);
    struct sender sender;
    unsigned n = 0;

    sender_begin(&sender, t->context);
    for (int level = 1; level <= 3; level++) {
        sender.compression.level = level;
        for (unsigned encoding = 0; encoding < BOW__N_ENCODINGS; encoding++) {
            int rc = give_encoded(&sender, payload, (enum bow__encoding)encoding);
            rc = rc == 0 ? give_encoded(&sender, payload, (enum bow__encoding)encoding) : rc;
            n += rc == 0;
        }
    }
    unsigned n_forms = 0;
    for (const struct bow__form *form = atomic_load(&payload->forms); form != NULL;
         form = form->next) {
        n_forms++;
        assert_ptr_equal(bow__payload_form(payload, form->encoding, form->level), form);
    }
    assert_true(n >= 3);
    assert_int_equal(n_forms, n);
    sender_end(&sender);
    bow_payload_unref(payload);
}

static void test_packing_payload_that_does_not_shrink_is_tried_once(void **state)
{
    struct fixture *t = *state;
    uint32_t noise = 1;
    struct sender sender;

    for (size_t i = 0; i < ALL_BYTES; i++) {
        noise = noise * 1103515245u + 12345u;
        t->bytes[i] = (uint8_t)(noise >> 16);
    }
    struct bow_payload *payload = payload_of(t);
    sender_begin(&sender, t->context);
    assert_int_equal(give(&sender, payload), 1);
    size_t before = n_allocated(t);
    assert_int_equal(give(&sender, payload), 1);
    assert_int_equal(n_allocated(t) - before, 1);
    sender_end(&sender);
    bow_payload_unref(payload);
}

static void test_packing_payload_below_the_threshold_goes_as_it_is(void **state)
{
    struct fixture *t = *state;
    struct sender sender;

    sender_begin(&sender, t->context);
    sender.compression.threshold_bytes = 2 * ALL_BYTES;
    struct bow_payload *payload = payload_of(t);
    assert_int_equal(give(&sender, payload), 1);
    assert_int_equal(give_encoded(&sender, payload, BOW__ENCODING_IDENTITY), 1);
    assert_null(atomic_load(&payload->forms));
    sender_end(&sender);
    bow_payload_unref(payload);
}

/* Each message says for itself whether the threshold counts, or nothing is compressed. */
static void test_packing_payload_is_compressed_as_its_sender_says(void **state)
{
    struct fixture *t = *state;
    struct sender sender;

    sender_begin(&sender, t->context);
    sender.compression.threshold_bytes = 2 * ALL_BYTES;
    struct bow_payload *payload = payload_of(t);
    sender.compression.mode = BOW_COMPRESSION_ON;
    assert_int_equal(give(&sender, payload), 0);
    expect_inflates_to(&sender, payload);
    sender.compression.mode = BOW_COMPRESSION_OFF;
    assert_int_equal(give(&sender, payload), 1);
    sender.compression.mode = BOW_COMPRESSION_DEFAULT;
    assert_int_equal(give(&sender, payload), 1);
    sender_end(&sender);
    bow_payload_unref(payload);
}

static uint32_t takes; /* what the peer takes */

static uint32_t encodings_of_peer(const struct bow__session *session, uint64_t key)
{
    (void)session;
    (void)key;
    return takes;
}

/* zstd, else gzip, else deflate, of those that both sides have. */
static void test_packing_takes_the_best_that_both_have(void **state)
{
    static const struct bow__session_ops ops = {.encodings = encodings_of_peer};
    static const enum bow__encoding order[] = {BOW__ENCODING_ZSTD, BOW__ENCODING_GZIP,
                                               BOW__ENCODING_DEFLATE};
    struct bow__session session = {.ops = &ops};

    (void)state;
    takes = 1u << BOW__ENCODING_IDENTITY;
    assert_int_equal(bow__compression_choose(&session, 1), BOW__ENCODING_IDENTITY);
    for (size_t i = 3; i-- > 0;) {
        bool is_built = (bow__encodings_built() >> order[i] & 1u) != 0;
        enum bow__encoding before = bow__compression_choose(&session, 1);
        takes |= 1u << order[i];
        assert_int_equal(bow__compression_choose(&session, 1), is_built ? order[i] : before);
    }
}

static void test_packing_payload_whose_stream_has_ended_keeps_its_form(void **state)
{
    struct fixture *t = *state;
    struct sender sender;

    sender_begin(&sender, t->context);
    struct bow_payload *payload = payload_of(t);
    sender.rc = -ENOENT;
    assert_int_equal(give(&sender, payload), -ENOENT);
    sender.rc = 0;
    assert_int_equal(give(&sender, payload), 0);
    sender_end(&sender);
    bow_payload_unref(payload);
}

/* What a session of another context sends is of that context, and may outlive this one. */
static void test_packing_payload_of_another_context_is_not_given_memory(void **state)
{
    struct fixture *t = *state;
    struct test_alloc alloc;
    struct sender sender;

    test_alloc_init(&alloc);
    struct bow_context *other = test_context_new(&alloc);
    sender_begin(&sender, other);
    struct bow_payload *payload = payload_of(t);
    assert_int_equal(give(&sender, payload), 0);
    assert_null(atomic_load(&payload->forms));
    sender_end(&sender);
    test_context_end(other, &alloc);
    bow_payload_unref(payload);
}

/* Each allocation fails in turn, but for that of what waits: the payload goes as it is. */
static void test_packing_payload_without_memory_goes_as_it_is(void **state)
{
    struct fixture *t = *state;
    struct sender sender;
    bool has_failed = true;
    int n_plain = 0;

    for (size_t i = 2; has_failed; i++) {
        struct bow_payload *payload = payload_of(t);
        sender_begin(&sender, t->context);
        size_t fails_at = n_allocated(t) + i;
        t->alloc.fail_at = fails_at;
        int rc = give(&sender, payload);
        has_failed = n_allocated(t) >= fails_at;
        t->alloc.fail_at = 0;
        assert_true(rc == (atomic_load(&payload->forms) == NULL));
        assert_true(has_failed || rc == 0);
        n_plain += rc;
        sender_end(&sender);
        bow_payload_unref(payload);
    }
    assert_true(n_plain >= 2); /* the block, the form */
}

/* Loops that need the same form at once */

struct thread {
    struct fixture *t;
    pthread_barrier_t *barrier;
    struct bow_payload **payloads;
    pthread_t id;
    bool good;
};

static void *send_all(void *user)
{
    struct thread *thread = user;
    struct sender sender;

    sender_begin(&sender, thread->t->context);
    thread->good = true;
    for (int i = 0; i < N_ROUNDS; i++) {
        pthread_barrier_wait(thread->barrier);
        int rc = give(&sender, thread->payloads[i]);
        thread->good =
            thread->good && rc == 0 &&
            sender.block == bow__payload_form(thread->payloads[i], one_of_ours(), 0)->block;
        bow_payload_unref(thread->payloads[i]);
    }
    sender_end(&sender);
    return NULL;
}

static void test_packing_payload_is_shared_by_loops(void **state)
{
    static struct bow_payload *payloads[N_ROUNDS];
    struct thread threads[N_THREADS];
    struct fixture *t = *state;
    pthread_barrier_t barrier;

    assert_int_equal(pthread_barrier_init(&barrier, NULL, N_THREADS), 0);
    for (int i = 0; i < N_ROUNDS; i++) {
        payloads[i] = payload_of(t);
        for (int k = 1; k < N_THREADS; k++) {
            bow_payload_ref(payloads[i]);
        }
    }
    for (int i = 0; i < N_THREADS; i++) {
        threads[i] = (struct thread){.t = t, .barrier = &barrier, .payloads = payloads};
        assert_int_equal(pthread_create(&threads[i].id, NULL, send_all, &threads[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i].id, NULL);
        assert_true(threads[i].good);
    }
    pthread_barrier_destroy(&barrier);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_packing_payload_is_compressed_once),
        TEST(test_packing_payload_has_a_form_for_each_level_and_encoding),
        TEST(test_packing_payload_that_does_not_shrink_is_tried_once),
        TEST(test_packing_payload_below_the_threshold_goes_as_it_is),
        TEST(test_packing_payload_is_compressed_as_its_sender_says),
        TEST(test_packing_takes_the_best_that_both_have),
        TEST(test_packing_payload_whose_stream_has_ended_keeps_its_form),
        TEST(test_packing_payload_of_another_context_is_not_given_memory),
        TEST(test_packing_payload_without_memory_goes_as_it_is),
        TEST(test_packing_payload_is_shared_by_loops),
    };

    if (bow__encodings_built() == 1u << BOW__ENCODING_IDENTITY) {
        puts("skipped: this build has no encoding");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
