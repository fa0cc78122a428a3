/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The maps against models, with keys that all want the same place.
 */

#include "base/map.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_KEYS 512
#define BIG_ENDIAN_MACHINE (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__map map;
};

static int setup(void **state)
{
    static struct fixture fixture;

    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    bow__map_init(&fixture.map, fixture.context);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    bow__map_fini(&f->map);
    test_context_end(f->context, &f->alloc);
    return 0;
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void test_map_empty_has_nothing_and_no_memory(void **state)
{
    struct fixture *f = *state;
    size_t cursor = 0;
    uint64_t key = 0;
    void *value = NULL;

    assert_null(bow__map_get(&f->map, 0));
    assert_null(bow__map_remove(&f->map, 0));
    assert_false(bow__map_next(&f->map, &cursor, &key, &value));
    bow__map_shrink(&f->map);
    assert_int_equal(bow_context_bytes(f->context), 0);
}

static void test_map_put_get_remove(void **state)
{
    struct fixture *f = *state;
    int a = 0;
    int b = 0;

    assert_int_equal(bow__map_put(&f->map, 0, &a), 0);
    assert_int_equal(bow__map_put(&f->map, UINT64_MAX, &b), 0);
    assert_ptr_equal(bow__map_get(&f->map, 0), &a);
    assert_ptr_equal(bow__map_get(&f->map, UINT64_MAX), &b);
    assert_null(bow__map_get(&f->map, 1));
    assert_ptr_equal(bow__map_remove(&f->map, 0), &a);
    assert_null(bow__map_remove(&f->map, 0));
    assert_null(bow__map_get(&f->map, 0));
    assert_int_equal(f->map.n_items, 1);
}

/* Keys whose home is one of the last `n_homes` places of a table of `cap`: runs that wrap. */
static size_t find_colliding(struct fixture *f, size_t cap, size_t n_homes, uint64_t *keys,
                             size_t max)
{
    struct bow__map probe;
    size_t n = 0;
    int value = 0;

    bow__map_init(&probe, f->context);
    for (uint64_t key = 0; n < max; key++) {
        assert_int_equal(bow__map_put(&probe, key, &value), 0);
        assert_true(probe.cap == cap);
        for (size_t i = 0; i < cap; i++) {
            bool here = probe.entries[i].value != NULL && i >= cap - n_homes;
            if (here) {
                keys[n++] = key;
            }
        }
        bow__map_remove(&probe, key);
    }
    bow__map_fini(&probe);
    return n;
}

static void test_map_colliding_keys_survive_each_removal(void **state)
{
    struct fixture *f = *state;
    uint64_t keys[12]; /* as many as a table of 16 takes */

    size_t n_keys = find_colliding(f, 16, 2, keys, 12);
    for (size_t victim = 0; victim < n_keys; victim++) {
        for (size_t i = 0; i < n_keys; i++) {
            assert_int_equal(bow__map_put(&f->map, keys[i], &keys[i]), 0);
        }
        assert_int_equal(f->map.cap, 16);
        assert_ptr_equal(bow__map_remove(&f->map, keys[victim]), &keys[victim]);
        for (size_t i = 0; i < n_keys; i++) {
            assert_ptr_equal(bow__map_get(&f->map, keys[i]), i == victim ? NULL : &keys[i]);
        }
        for (size_t i = 0; i < n_keys; i++) {
            void *value = bow__map_remove(&f->map, keys[i]);
            assert_ptr_equal(value, i == victim ? NULL : &keys[i]);
        }
        assert_int_equal(f->map.n_items, 0);
    }
}

static void test_map_removal_closes_the_run(void **state)
{
    struct fixture *f = *state;
    uint64_t keys[6];

    find_colliding(f, 16, 1, keys, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(bow__map_put(&f->map, keys[i], &keys[i]), 0);
    }
    bow__map_remove(&f->map, keys[0]);
    /* home is the last place: the run is that and the first four, with no gap left behind */
    assert_non_null(f->map.entries[15].value);
    for (size_t i = 0; i < 4; i++) {
        assert_non_null(f->map.entries[i].value);
    }
    assert_null(f->map.entries[4].value);
}

static void assert_matches(const struct bow__map *map, void *const *model)
{
    size_t cursor = 0;
    size_t n_visited = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (bow__map_next(map, &cursor, &key, &value)) {
        assert_ptr_equal(value, model[key % N_KEYS]);
        n_visited++;
    }
    assert_int_equal(n_visited, map->n_items);
    for (uint64_t i = 0; i < N_KEYS; i++) {
        assert_ptr_equal(bow__map_get(map, i + N_KEYS * i), model[i]);
    }
}

static void test_map_random_operations_match_the_model(void **state)
{
    struct fixture *f = *state;
    void *model[N_KEYS] = {0};
    uint64_t seed = 7;

    for (int i = 0; i < 20000; i++) {
        /* the share of removals swings, so that the map fills and empties */
        uint64_t n = next_random(&seed) % N_KEYS;
        uint64_t key = n + N_KEYS * n;
        bool removing = next_random(&seed) % 10 < (i / 2000 % 2 == 0 ? 3u : 7u);
        if (removing) {
            assert_ptr_equal(bow__map_remove(&f->map, key), model[n]);
            model[n] = NULL;
        } else if (model[n] == NULL) {
            assert_int_equal(bow__map_put(&f->map, key, &model[n]), 0);
            model[n] = &model[n];
        }
        if (i % 50 == 0) {
            bow__map_shrink(&f->map);
            assert_matches(&f->map, model);
        }
        assert_true(f->map.n_items * 4 <= f->map.cap * 3);
    }
}

static void test_map_put_without_memory_leaves_the_map(void **state)
{
    struct fixture *f = *state;
    int value = 0;

    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_int_equal(bow__map_put(&f->map, 1, &value), -ENOMEM);
    assert_int_equal(f->map.n_items, 0);
    for (uint64_t key = 0; key < 12; key++) {
        assert_int_equal(bow__map_put(&f->map, key, &value), 0);
    }
    f->alloc.fail_at = f->alloc.n_calls + 1;
    assert_int_equal(bow__map_put(&f->map, 12, &value), -ENOMEM);
    assert_int_equal(f->map.n_items, 12);
    assert_null(bow__map_get(&f->map, 12));
    for (uint64_t key = 0; key < 12; key++) {
        assert_ptr_equal(bow__map_get(&f->map, key), &value);
    }
}

static void test_map_shrink_gives_memory_back(void **state)
{
    struct fixture *f = *state;
    int value = 0;

    for (uint64_t key = 0; key < 1000; key++) {
        assert_int_equal(bow__map_put(&f->map, key, &value), 0);
    }
    size_t n_full = bow_context_bytes(f->context);
    size_t n_calls = f->alloc.n_calls;
    bow__map_shrink(&f->map); /* well filled: not even tried */
    assert_int_equal(f->alloc.n_calls, n_calls);
    for (uint64_t key = 10; key < 1000; key++) {
        bow__map_remove(&f->map, key);
    }
    f->alloc.fail_at = f->alloc.n_calls + 1;
    bow__map_shrink(&f->map); /* out of memory: stays as large */
    assert_int_equal(bow_context_bytes(f->context), n_full);
    bow__map_shrink(&f->map);
    assert_int_equal(f->map.cap, 32);
    for (uint64_t key = 0; key < 10; key++) {
        assert_ptr_equal(bow__map_remove(&f->map, key), &value);
    }
    bow__map_shrink(&f->map);
    assert_int_equal(bow_context_bytes(f->context), 0);
    assert_int_equal(bow__map_put(&f->map, 1, &value), 0);
}

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static void test_bytes_map_finds_keys_of_every_length(void **state)
{
    struct fixture *f = *state;
    struct bow__bytes_map map;
    char bytes[101];

    memset(bytes, 'k', sizeof(bytes));
    bow__bytes_map_init(&map, f->context, 42);
    assert_null(bow__bytes_map_get(&map, (struct bow_slice){NULL, 0}));
    for (size_t len = 0; len < sizeof(bytes); len++) {
        struct bow_slice key = {(const uint8_t *)bytes, len};
        assert_int_equal(bow__bytes_map_put(&map, key, &bytes[len]), 0);
    }
    char copy[101]; /* the bytes are the key, not where they lie */
    memset(copy, 'k', sizeof(copy));
    for (size_t len = 0; len < sizeof(bytes); len++) {
        struct bow_slice key = {(const uint8_t *)copy, len};
        assert_ptr_equal(bow__bytes_map_get(&map, key), &bytes[len]);
    }
    assert_ptr_equal(bow__bytes_map_get(&map, (struct bow_slice){NULL, 0}), &bytes[0]);
    copy[7] = 'K';
    for (size_t len = 8; len < sizeof(bytes); len++) {
        struct bow_slice key = {(const uint8_t *)copy, len};
        assert_null(bow__bytes_map_get(&map, key));
    }
    bow__bytes_map_fini(&map);
}

static void test_bytes_map_of_many_paths_finds_each(void **state)
{
    struct fixture *f = *state;
    static char paths[1000][32];
    struct bow__bytes_map map;

    bow__bytes_map_init(&map, f->context, 7);
    for (int i = 0; i < 1000; i++) {
        snprintf(paths[i], sizeof(paths[i]), "/demo.Greeter/Method%d", i);
        assert_int_equal(bow__bytes_map_put(&map, slice_of(paths[i]), paths[i]), 0);
    }
    assert_int_equal(map.n_items, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_ptr_equal(bow__bytes_map_get(&map, slice_of(paths[i])), paths[i]);
    }
    assert_null(bow__bytes_map_get(&map, slice_of("/demo.Greeter/Method1000")));
    assert_null(bow__bytes_map_get(&map, slice_of("/demo.Greeter/Method")));
    bow__bytes_map_fini(&map);
}

/* Where a key lies must depend on the seed, and all places must be used alike. */
static void test_bytes_map_seed_moves_the_keys(void **state)
{
    struct fixture *f = *state;
    struct bow__bytes_map maps[2];
    static char keys[12][8];
    size_t n_same = 0;
    int value = 0;

    bow__bytes_map_init(&maps[0], f->context, 1);
    bow__bytes_map_init(&maps[1], f->context, 2);
    for (int i = 0; i < 12; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key%d", i);
        assert_int_equal(bow__bytes_map_put(&maps[0], slice_of(keys[i]), &value), 0);
        assert_int_equal(bow__bytes_map_put(&maps[1], slice_of(keys[i]), &value), 0);
    }
    for (size_t i = 0; i < maps[0].cap; i++) {
        const struct bow__bytes_map_entry *a = &maps[0].entries[i];
        const struct bow__bytes_map_entry *b = &maps[1].entries[i];
        n_same += a->value != NULL && a->hash == b->hash;
    }
    assert_int_equal(n_same, 0);
    bow__bytes_map_fini(&maps[0]);
    bow__bytes_map_fini(&maps[1]);
}

/* SipHash-1-3 as a second implementation computes it; the order of bytes is the machine's. */
static void test_bytes_map_hash_is_siphash(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *key;
        uint64_t hash;
    } known[] = {
        {"", UINT64_C(0xa53227c8d4c74534)},
        {"1234567", UINT64_C(0xc2d6fde117bb4e9c)},
        {"12345678", UINT64_C(0x5571faec25c6e688)},
        {"/demo.Greeter/SayHello", UINT64_C(0xf74a34d7e9cf23f6)},
    };
    int value = 0;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !BIG_ENDIAN_MACHINE; i++) {
        struct bow__bytes_map map;
        bow__bytes_map_init(&map, f->context, UINT64_C(0x0123456789abcdef));
        assert_int_equal(bow__bytes_map_put(&map, slice_of(known[i].key), &value), 0);
        size_t home = (size_t)known[i].hash & (map.cap - 1);
        assert_true(map.entries[home].hash == known[i].hash);
        bow__bytes_map_fini(&map);
    }
}

static void test_bytes_map_of_equal_hashes_compares_the_bytes(void **state)
{
    struct fixture *f = *state;
    struct bow__bytes_map map;
    int value = 0;

    bow__bytes_map_init(&map, f->context, 5);
    assert_int_equal(bow__bytes_map_put(&map, slice_of("key"), &value), 0);
    for (size_t i = 0; i < map.cap; i++) {
        map.entries[i].key = slice_of("kez"); /* as if that had the hash of "key" */
    }
    assert_null(bow__bytes_map_get(&map, slice_of("key")));
    bow__bytes_map_fini(&map);
}

static int fill_bytes_map(struct bow_context *context, void *user)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                       "i", "j", "k", "l", "m", "n", "o", "p"};
    struct bow__bytes_map map;
    int rc = 0;

    (void)user;
    bow__bytes_map_init(&map, context, 3);
    for (size_t i = 0; i < 16 && rc == 0; i++) {
        size_t n_items = map.n_items;
        rc = bow__bytes_map_put(&map, slice_of(keys[i]), &rc);
        assert_int_equal(map.n_items, n_items + (rc == 0));
    }
    for (size_t i = 0; i < map.n_items; i++) {
        assert_non_null(bow__bytes_map_get(&map, slice_of(keys[i])));
    }
    bow__bytes_map_fini(&map);
    return rc;
}

static void test_bytes_map_with_each_allocation_failing_stays_whole(void **state)
{
    (void)state;
    assert_int_equal(test_alloc_fail_each(NULL, fill_bytes_map, NULL), 3);
}

#define UNIT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_map_empty_has_nothing_and_no_memory),
        UNIT(test_map_put_get_remove),
        UNIT(test_map_colliding_keys_survive_each_removal),
        UNIT(test_map_removal_closes_the_run),
        UNIT(test_map_random_operations_match_the_model),
        UNIT(test_map_put_without_memory_leaves_the_map),
        UNIT(test_map_shrink_gives_memory_back),
        UNIT(test_bytes_map_finds_keys_of_every_length),
        UNIT(test_bytes_map_of_many_paths_finds_each),
        UNIT(test_bytes_map_seed_moves_the_keys),
        UNIT(test_bytes_map_hash_is_siphash),
        UNIT(test_bytes_map_of_equal_hashes_compares_the_bytes),
        UNIT(test_bytes_map_with_each_allocation_failing_stays_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
