/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Output buffers: order, in place, by reference, and against a flat model.
 */

#include "base/outbuf.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_IDLE 4
#define MAX_PIECES 64

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__pool pool;
    struct bow__outbuf out;
};

static int setup(void **state)
{
    static struct fixture fixture;

    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    bow__pool_init(&fixture.pool, fixture.context, MAX_IDLE);
    bow__outbuf_init(&fixture.out, &fixture.pool);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    bow__outbuf_fini(&f->out);
    bow__pool_fini(&f->pool);
    test_context_end(f->context, &f->alloc);
    return 0;
}

/* Copy what drain() shows, at most `max` bytes. */
static size_t peek(const struct bow__outbuf *out, uint8_t *bytes, size_t max)
{
    struct iovec iov[MAX_PIECES];
    size_t len = 0;
    int n = bow__outbuf_drain(out, iov, MAX_PIECES);

    for (int i = 0; i < n; i++) {
        size_t n_take = iov[i].iov_len < max - len ? iov[i].iov_len : max - len;
        assert_int_not_equal(iov[i].iov_len, 0);
        memcpy(bytes + len, iov[i].iov_base, n_take);
        len += n_take;
    }
    return len;
}

static void assert_holds(const struct bow__outbuf *out, const char *expected)
{
    uint8_t bytes[256];
    size_t len = peek(out, bytes, sizeof(bytes));

    assert_int_equal(out->n_bytes, strlen(expected));
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(bytes, expected, len);
}

static struct bow__block *block_of(struct fixture *f, const char *text)
{
    struct bow__block *block = bow__block_new(f->context, strlen(text));

    assert_non_null(block);
    memcpy(block->data, text, strlen(text));
    return block;
}

static void append_text_block(struct fixture *f, const char *text)
{
    struct bow__block *block = block_of(f, text);

    assert_int_equal(bow__outbuf_append_block(&f->out, block, 0, strlen(text)), 0);
    bow__block_unref(block);
}

static int n_pieces(const struct bow__outbuf *out)
{
    struct iovec iov[MAX_PIECES];

    return bow__outbuf_drain(out, iov, MAX_PIECES);
}

static void test_outbuf_empty_holds_no_memory(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(n_pieces(&f->out), 0);
    assert_int_equal(bow_context_bytes(f->context), 0);
    assert_int_equal(bow__outbuf_append(&f->out, NULL, 0), 0);
    bow__outbuf_sent(&f->out, 0);
    assert_int_equal(bow_context_bytes(f->context), 0);
}

static void test_outbuf_small_pieces_are_one(void **state)
{
    struct fixture *f = *state;
    size_t cap = 0;

    assert_int_equal(bow__outbuf_append(&f->out, "bow", 3), 0);
    uint8_t *place = bow__outbuf_reserve(&f->out, 4, &cap);
    assert_true(cap >= 4);
    assert_int_equal(f->out.n_reserved, cap);
    memcpy(place, "line....", 8);
    bow__outbuf_commit(&f->out, 4);
    assert_holds(&f->out, "bowline");
    assert_int_equal(n_pieces(&f->out), 1);
}

static void test_outbuf_commit_of_nothing_drops_the_chunk(void **state)
{
    struct fixture *f = *state;
    size_t cap = 0;

    assert_non_null(bow__outbuf_reserve(&f->out, 100, &cap));
    bow__outbuf_commit(&f->out, 0);
    assert_int_equal(f->pool.n_idle, 1);
    assert_int_equal(bow__outbuf_append(&f->out, "bow", 3), 0);
    assert_non_null(bow__outbuf_reserve(&f->out, 100, &cap));
    bow__outbuf_commit(&f->out, 0);
    assert_holds(&f->out, "bow");
}

static void test_outbuf_reserve_again_replaces_the_first(void **state)
{
    struct fixture *f = *state;
    size_t cap = 0;

    assert_int_equal(bow__outbuf_append(&f->out, "bow", 3), 0);
    uint8_t *place = bow__outbuf_reserve(&f->out, 10, &cap);
    assert_ptr_equal(bow__outbuf_reserve(&f->out, 1000, &cap), place);
    memcpy(place, "line", 4);
    bow__outbuf_commit(&f->out, 4);
    assert_holds(&f->out, "bowline");
}

static void test_outbuf_blocks_and_bytes_keep_their_order(void **state)
{
    struct fixture *f = *state;

    append_text_block(f, "<1>");
    assert_int_equal(bow__outbuf_append(&f->out, "ab", 2), 0);
    append_text_block(f, "<2>");
    append_text_block(f, "<3>");
    assert_int_equal(bow__outbuf_append(&f->out, "cd", 2), 0);
    assert_int_equal(bow__outbuf_append(&f->out, "ef", 2), 0);
    assert_holds(&f->out, "<1>ab<2><3>cdef");
    assert_int_equal(n_pieces(&f->out), 5);
}

static void test_outbuf_headers_between_blocks_share_one_chunk(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = block_of(f, "payload");
    size_t n_before = f->alloc.n_calls;

    for (int i = 0; i < 20; i++) {
        assert_int_equal(bow__outbuf_append(&f->out, "header", 6), 0);
        assert_int_equal(bow__outbuf_append_block(&f->out, block, 0, 7), 0);
    }
    assert_int_equal(f->alloc.n_calls - n_before, 1);
    bow__block_unref(block);
    assert_int_equal(f->out.n_bytes, 20 * 13);
}

static void test_outbuf_part_of_a_block_is_referenced(void **state)
{
    struct fixture *f = *state;
    struct bow__block *block = block_of(f, "bowline");
    struct iovec iov[2];

    assert_int_equal(bow__outbuf_append_block(&f->out, block, 3, 4), 0);
    assert_int_equal(bow__outbuf_append_block(&f->out, block, 7, 0), 0);
    assert_int_equal(bow__outbuf_drain(&f->out, iov, 2), 1);
    assert_ptr_equal(iov[0].iov_base, block->data + 3);
    bow__block_unref(block);
    assert_holds(&f->out, "line");
    bow__outbuf_sent(&f->out, 4);
    assert_int_equal(f->alloc.n_blocks, 1 + f->pool.n_idle);
}

static void test_outbuf_drain_gives_at_most_max(void **state)
{
    struct fixture *f = *state;
    struct iovec iov[2];

    append_text_block(f, "<1>");
    append_text_block(f, "<2>");
    append_text_block(f, "<3>");
    assert_int_equal(bow__outbuf_drain(&f->out, iov, 2), 2);
    assert_memory_equal(iov[1].iov_base, "<2>", 3);
    assert_int_equal(bow__outbuf_drain(&f->out, iov, 0), 0);
}

static void test_outbuf_sent_in_parts_goes_front_to_back(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(bow__outbuf_append(&f->out, "ab", 2), 0);
    append_text_block(f, "<1>");
    assert_int_equal(bow__outbuf_append(&f->out, "cd", 2), 0);
    bow__outbuf_sent(&f->out, 1);
    assert_holds(&f->out, "b<1>cd");
    bow__outbuf_sent(&f->out, 2);
    assert_holds(&f->out, "1>cd");
    bow__outbuf_sent(&f->out, 3);
    assert_holds(&f->out, "d");
    assert_int_equal(bow__outbuf_append(&f->out, "e", 1), 0);
    assert_holds(&f->out, "de");
    bow__outbuf_sent(&f->out, 2);
    assert_int_equal(f->out.n_bytes, 0);
    assert_null(f->out.chunk);
    assert_int_equal(f->pool.n_idle, 1);
}

static void test_outbuf_append_after_drain_leaves_what_was_drained(void **state)
{
    struct fixture *f = *state;
    struct iovec iov[MAX_PIECES];

    assert_int_equal(bow__outbuf_append(&f->out, "drained", 7), 0);
    assert_int_equal(bow__outbuf_drain(&f->out, iov, MAX_PIECES), 1);
    for (int i = 0; i < 40000; i++) {
        assert_int_equal(bow__outbuf_append(&f->out, "more", 4), 0);
    }
    assert_int_equal(iov[0].iov_len, 7);
    assert_memory_equal(iov[0].iov_base, "drained", 7);
    bow__outbuf_sent(&f->out, 7);
    assert_int_equal(f->out.n_bytes, 160000);
}

static void test_outbuf_reserve_of_the_most_always_fits(void **state)
{
    struct fixture *f = *state;
    size_t cap = 0;

    for (int i = 0; i < 5; i++) {
        uint8_t *place = bow__outbuf_reserve(&f->out, BOW__CHUNK_BYTES / 2, &cap);
        assert_non_null(place);
        assert_true(cap >= BOW__CHUNK_BYTES / 2);
        memset(place, i, cap);
        bow__outbuf_commit(&f->out, BOW__CHUNK_BYTES / 2);
    }
    assert_int_equal(f->out.n_bytes, 5 * (BOW__CHUNK_BYTES / 2));
}

/* Whatever is left of the chunk, a segment before the bytes must fit too. */
static void test_outbuf_reserve_near_the_end_of_a_chunk_fits(void **state)
{
    struct fixture *f = *state;
    size_t cap = 0;

    for (size_t n_left = 0; n_left < 300; n_left++) {
        assert_non_null(bow__outbuf_reserve(&f->out, 1, &cap));
        bow__outbuf_commit(&f->out, cap - n_left);
        append_text_block(f, "<1>");
        const uint8_t *place = bow__outbuf_reserve(&f->out, 64, &cap);
        assert_true(cap >= 64);
        assert_ptr_equal(place + cap, f->out.chunk->data + BOW__CHUNK_BYTES);
        bow__outbuf_commit(&f->out, 0);
        bow__outbuf_sent(&f->out, f->out.n_bytes);
    }
}

/* Before and behind it as ever; and the pool gets none of it. */
static void test_outbuf_reserve_longer_than_a_chunk_is_contiguous(void **state)
{
    struct fixture *f = *state;
    static uint8_t seen[2 * BOW__CHUNK_BYTES + 8];
    size_t n = BOW__CHUNK_BYTES + 1000;
    size_t cap = 0;

    assert_int_equal(bow__outbuf_append(&f->out, "front", 5), 0);
    uint8_t *place = bow__outbuf_reserve(&f->out, n, &cap);
    assert_non_null(place);
    assert_true(cap >= n);
    memset(place, 'x', n);
    bow__outbuf_commit(&f->out, n);
    assert_int_equal(bow__outbuf_append(&f->out, "back", 4), 0);
    assert_int_equal(peek(&f->out, seen, sizeof(seen)), n + 9);
    assert_memory_equal(seen, "frontx", 6);
    assert_memory_equal(seen + n + 4, "xback", 5);
    bow__outbuf_sent(&f->out, n);
    bow__outbuf_sent(&f->out, 9);
    assert_int_equal(f->pool.n_idle, 1);
    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_null(bow__outbuf_reserve(&f->out, n, &cap));
    assert_int_equal(f->out.n_bytes, 0);
}

static void test_outbuf_append_longer_than_a_chunk_is_whole(void **state)
{
    struct fixture *f = *state;
    size_t len = 3 * BOW__CHUNK_BYTES;
    uint8_t *bytes = malloc(len);
    uint8_t *seen = malloc(len);

    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)(i * 31 >> 3);
    }
    assert_int_equal(bow__outbuf_append(&f->out, bytes, len), 0);
    assert_int_equal(peek(&f->out, seen, len), len);
    assert_memory_equal(seen, bytes, len);
    free(bytes);
    free(seen);
}

static void test_outbuf_without_memory_appends_nothing(void **state)
{
    struct fixture *f = *state;
    static uint8_t large[BOW__CHUNK_BYTES];
    size_t cap = 17;

    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_null(bow__outbuf_reserve(&f->out, 8, &cap));
    assert_int_equal(cap, 17);
    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_int_equal(bow__outbuf_append(&f->out, "bow", 3), -ENOMEM);
    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_int_equal(bow__outbuf_append(&f->out, large, sizeof(large)), -ENOMEM);
    f->alloc.fail_at = f->alloc.n_calls + 2; /* the copy is made, the chunk is not */
    assert_int_equal(bow__outbuf_append(&f->out, large, sizeof(large)), -ENOMEM);
    struct bow__block *block = block_of(f, "bowline");
    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_int_equal(bow__outbuf_append_block(&f->out, block, 0, 7), -ENOMEM);
    bow__block_unref(block);
    assert_int_equal(f->out.n_bytes, 0);
    assert_int_equal(bow_context_bytes(f->context), 0);
}

static void test_outbuf_full_chunk_without_memory_keeps_its_bytes(void **state)
{
    struct fixture *f = *state;
    size_t cap = 0;

    assert_int_equal(bow__outbuf_append(&f->out, "bow", 3), 0);
    assert_non_null(bow__outbuf_reserve(&f->out, BOW__CHUNK_BYTES / 2, &cap));
    bow__outbuf_commit(&f->out, cap);
    size_t n_bytes = f->out.n_bytes;
    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_int_equal(bow__outbuf_append(&f->out, "x", 1), -ENOMEM);
    assert_int_equal(f->out.n_bytes, n_bytes);
    assert_int_equal(bow__outbuf_append(&f->out, "x", 1), 0);
    assert_int_equal(f->out.n_bytes, n_bytes + 1);
}

static void test_outbuf_fini_with_bytes_left_frees_all(void **state)
{
    struct fixture *f = *state;
    size_t cap = 0;

    append_text_block(f, "<1>");
    assert_int_equal(bow__outbuf_append(&f->out, "ab", 2), 0);
    assert_non_null(bow__outbuf_reserve(&f->out, 8, &cap));
    bow__outbuf_fini(&f->out);
    bow__outbuf_fini(&f->out);
    bow__outbuf_init(&f->out, &f->pool);
    assert_int_equal(f->alloc.n_blocks, 1 + f->pool.n_idle);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

struct model {
    uint64_t seed;
    uint8_t next_in; /* the stream counts up, byte by byte */
    uint8_t next_out;
};

static void fill(struct model *model, uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bytes[i] = model->next_in++;
    }
}

static void add_randomly(struct fixture *f, struct model *model)
{
    static uint8_t bytes[40000];
    size_t n_max = next_random(&model->seed) % 8 == 0 ? sizeof(bytes) : 100;
    size_t len = next_random(&model->seed) % n_max;
    size_t cap = 0;

    switch (next_random(&model->seed) % 3) {
    case 0:
        fill(model, bytes, len);
        assert_int_equal(bow__outbuf_append(&f->out, bytes, len), 0);
        break;
    case 1:
        len = len % (BOW__CHUNK_BYTES / 2);
        fill(model, bow__outbuf_reserve(&f->out, len, &cap), len);
        bow__outbuf_commit(&f->out, len);
        break;
    default: {
        struct bow__block *block = bow__block_new(f->context, len + 5);
        fill(model, block->data + 5, len);
        assert_int_equal(bow__outbuf_append_block(&f->out, block, 5, len), 0);
        bow__block_unref(block);
        break;
    }
    }
}

static void send_randomly(struct fixture *f, struct model *model)
{
    struct iovec iov[8];
    size_t n_shown = 0;
    int n = bow__outbuf_drain(&f->out, iov, 8);

    for (int i = 0; i < n; i++) {
        n_shown += iov[i].iov_len;
    }
    size_t n_sent = n_shown > 0 ? next_random(&model->seed) % (n_shown + 1) : 0;
    size_t n_left = n_sent;
    for (int i = 0; i < n; i++) {
        const uint8_t *at = iov[i].iov_base;
        for (size_t k = 0; k < iov[i].iov_len && n_left > 0; k++, n_left--) {
            assert_int_equal(at[k], model->next_out++);
        }
    }
    bow__outbuf_sent(&f->out, n_sent);
}

static void test_outbuf_random_operations_match_the_model(void **state)
{
    struct fixture *f = *state;
    struct model model = {.seed = 11};

    for (int i = 0; i < 3000; i++) {
        add_randomly(f, &model);
        send_randomly(f, &model);
        if (i % 50 == 0) {
            while (f->out.n_bytes > 0) {
                send_randomly(f, &model);
            }
            assert_int_equal(model.next_in, model.next_out);
            assert_null(f->out.chunk);
            assert_int_equal(f->alloc.n_blocks, 1 + f->pool.n_idle);
        }
    }
}

static int queue_frames(struct bow_context *context, void *user)
{
    static uint8_t bytes[50000];
    struct bow__pool pool;
    struct bow__outbuf out;
    int rc = 0;

    (void)user;
    bow__pool_init(&pool, context, 1);
    bow__outbuf_init(&out, &pool);
    for (size_t len = 1; len <= sizeof(bytes) && rc == 0; len *= 7) {
        size_t n_bytes = out.n_bytes;
        rc = bow__outbuf_append(&out, bytes, len);
        assert_int_equal(out.n_bytes, n_bytes + (rc == 0 ? len : 0));
    }
    if (rc == 0) {
        rc = bow__outbuf_append(&out, bytes, sizeof(bytes));
    }
    bow__outbuf_sent(&out, out.n_bytes / 2);
    bow__outbuf_fini(&out);
    bow__pool_fini(&pool);
    return rc;
}

static void test_outbuf_with_each_allocation_failing_leaks_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, queue_frames, NULL) > 2);
}

#define UNIT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_outbuf_empty_holds_no_memory),
        UNIT(test_outbuf_small_pieces_are_one),
        UNIT(test_outbuf_commit_of_nothing_drops_the_chunk),
        UNIT(test_outbuf_reserve_again_replaces_the_first),
        UNIT(test_outbuf_blocks_and_bytes_keep_their_order),
        UNIT(test_outbuf_headers_between_blocks_share_one_chunk),
        UNIT(test_outbuf_part_of_a_block_is_referenced),
        UNIT(test_outbuf_drain_gives_at_most_max),
        UNIT(test_outbuf_sent_in_parts_goes_front_to_back),
        UNIT(test_outbuf_append_after_drain_leaves_what_was_drained),
        UNIT(test_outbuf_reserve_of_the_most_always_fits),
        UNIT(test_outbuf_reserve_near_the_end_of_a_chunk_fits),
        UNIT(test_outbuf_reserve_longer_than_a_chunk_is_contiguous),
        UNIT(test_outbuf_append_longer_than_a_chunk_is_whole),
        UNIT(test_outbuf_without_memory_appends_nothing),
        UNIT(test_outbuf_full_chunk_without_memory_keeps_its_bytes),
        UNIT(test_outbuf_fini_with_bytes_left_frees_all),
        UNIT(test_outbuf_random_operations_match_the_model),
        UNIT(test_outbuf_with_each_allocation_failing_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
