/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Descriptors that are read for reflection: what is told of them, what is left out of them, and
 * that one which is cut or tampered with is refused or read, and nothing beyond it.
 */

#include "rpc/services/descriptor.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "a.proto" of package "p": it imports "x", "y" and "z", of which the second and the third are
 * public; message M with a field f of type .p.M, message N in it and an enum there; a service S
 * with method One; an extension 7 of .q.E. */
static const uint8_t file[] = "\x0a\x07"
                              "a.proto"
                              "\x12\x01p"
                              "\x1a\x01x\x1a\x01y\x1a\x01z"
                              "\x22\x27"
                              "\x0a\x01M"
                              "\x12\x0c\x0a\x01"
                              "f\x18\x01\x32\x05.p.M_"
                              "\x1a\x03\x0a\x01N"
                              "\x22\x0a\x0a\x01K\x12\x05\x0a\x03ONE"
                              "\x42\x03\x0a\x01o"
                              "\x32\x17\x0a\x01S"
                              "\x12\x12\x0a\x03One"
                              "\x12\x04.p.M\x1a\x05.p.NO"
                              "\x3a\x0e\x0a\x01"
                              "e\x12\x04.q.E\x18\x07\x32\x01t"
                              "\x50\x01\x50\x02";

struct told {
    char text[2048];
    size_t n;
};

static int tell(struct told *told, char kind, struct bow_slice bytes)
{
    assert_true(told->n + bytes.len + 3 < sizeof(told->text));
    told->text[told->n++] = kind;
    memcpy(told->text + told->n, bytes.data, bytes.len);
    told->n += bytes.len;
    told->text[told->n++] = ' ';
    told->text[told->n] = '\0';
    return 0;
}

static int on_symbol(struct bow_slice name, bool is_message, void *user)
{
    return tell(user, is_message ? 'm' : 's', name);
}

static int on_reference(struct bow_slice type, void *user)
{
    return tell(user, 'r', type);
}

static int on_extension(struct bow_slice extendee, int32_t number, void *user)
{
    assert_int_equal(number, 7);
    return tell(user, 'e', extendee);
}

static int on_dependency(struct bow_slice name, void *user)
{
    return tell(user, 'd', name);
}

static const struct bow__descriptor_visitor visitor = {
    .symbol = on_symbol,
    .reference = on_reference,
    .extension = on_extension,
    .dependency = on_dependency,
};

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__arena arena;
    struct told told;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    test_alloc_init(&f->alloc);
    f->context = test_context_new(&f->alloc);
    bow__arena_init(&f->arena, f->context, NULL, 0, SIZE_MAX);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    bow__arena_fini(&f->arena);
    test_context_end(f->context, &f->alloc);
    free(f);
    return 0;
}

static int walk(struct fixture *f, const uint8_t *bytes, size_t n)
{
    f->told.n = 0;
    return bow__descriptor_walk((struct bow_slice){bytes, n}, &f->arena, &visitor, &f->told);
}

static void test_descriptor_tells_what_is_declared_and_named(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(walk(f, file, sizeof(file) - 1), 0);
    assert_string_equal(f->told.text, "dx dy dz mp.M sp.M.f r.p.M_ mp.M.N sp.M.K sp.M.ONE sp.M.o "
                                      "sp.S sp.S.One r.p.M r.p.NO sp.e rt r.q.E e.q.E ");
}

static bool keeps(struct bow_slice name, void *user)
{
    return name.len != 1 || strchr(user, (char)name.data[0]) == NULL;
}

static struct bow_slice strip(struct fixture *f, const char *dropped)
{
    struct bow_slice stripped = {0};

    assert_int_equal(bow__descriptor_strip((struct bow_slice){file, sizeof(file) - 1}, &f->arena,
                                           keeps, (void *)(uintptr_t)dropped, &stripped),
                     0);
    return stripped;
}

static void expect_stripped(struct fixture *f, const char *dropped, const char *imports,
                            const char *end)
{
    struct bow_slice stripped = strip(f, dropped);
    size_t n_end = strlen(end);

    assert_int_equal(walk(f, stripped.data, stripped.len), 0);
    assert_memory_equal(f->told.text, imports, strlen(imports));
    assert_memory_equal(f->told.text + strlen(imports), "mp.M ", 5);
    assert_memory_equal(stripped.data + stripped.len - n_end, end, n_end);
}

/* What is public is said by its number among the imports. */
static void test_descriptor_without_some_imports_is_right_about_the_others(void **state)
{
    struct fixture *f = *state;

    expect_stripped(f, "", "dx dy dz ", "\x01t\x50\x01\x50\x02");
    struct bow_slice stripped = strip(f, "x");
    assert_memory_equal(stripped.data + stripped.len - 4, "\x50\x00\x50\x01", 4);
    expect_stripped(f, "x", "dy dz ", "\x50\x01");
    expect_stripped(f, "y", "dx dz ", "\x01t\x50\x01");
    expect_stripped(f, "xyz", "", "\x01t");
}

/* In memory of its own, so that a look behind it is seen. */
static int walk_copy(struct fixture *f, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    memcpy(copy, bytes, n);
    int rc = walk(f, copy, n);
    free(copy);
    bow__arena_reset(&f->arena);
    return rc;
}

static void test_descriptor_that_is_cut_is_refused(void **state)
{
    struct fixture *f = *state;
    int n_refused = 0;

    for (size_t n = 0; n < sizeof(file) - 1; n++) {
        int rc = walk_copy(f, file, n);
        assert_true(rc == 0 || rc == -EBADMSG);
        n_refused += rc < 0;
    }
    /* All but those that end between two of its fields. */
    assert_int_equal(n_refused, (int)sizeof(file) - 1 - 10);
}

static void test_descriptor_that_is_tampered_with_is_read_or_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t tampered[sizeof(file) - 1];

    for (size_t i = 0; i < sizeof(tampered); i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct bow__descriptor_visitor symbols = {.symbol = on_symbol};
            memcpy(tampered, file, sizeof(tampered));
            tampered[i] ^= (uint8_t)(1u << bit);
            f->told.n = 0;
            int rc = bow__descriptor_walk((struct bow_slice){tampered, sizeof(tampered)}, &f->arena,
                                          &symbols, &f->told);
            assert_true(rc == 0 || rc == -EBADMSG);
            bow__arena_reset(&f->arena);
        }
    }
}

/* A message in a message in a message. */
static void test_descriptor_nested_too_deep_is_refused(void **state)
{
    static const struct bow__descriptor_visitor nothing = {.symbol = NULL};
    uint8_t bytes[1024];
    struct fixture *f = *state;
    size_t n = 0;

    for (int depth = 0; depth < BOW__DESCRIPTOR_DEPTH + 2; depth++) {
        /* From the inside: tag and length before what is there. */
        uint8_t tag = depth == BOW__DESCRIPTOR_DEPTH + 1 ? 0x22 : 0x1a;
        size_t n_head = n < 0x80 ? 2 : 3;
        memmove(bytes + n_head, bytes, n);
        bytes[0] = tag;
        bytes[1] = (uint8_t)(n < 0x80 ? n : (n & 0x7f) | 0x80);
        if (n_head == 3) {
            bytes[2] = (uint8_t)(n >> 7);
        }
        n += n_head;
        struct bow_slice slice = {bytes, n};
        if (depth < BOW__DESCRIPTOR_DEPTH) {
            bytes[0] = 0x22;
            assert_int_equal(bow__descriptor_walk(slice, &f->arena, &nothing, NULL), 0);
            bytes[0] = tag;
        }
    }
    assert_int_equal(bow__descriptor_walk((struct bow_slice){bytes, n}, &f->arena, &nothing, NULL),
                     -EBADMSG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_descriptor_tells_what_is_declared_and_named),
        TEST(test_descriptor_without_some_imports_is_right_about_the_others),
        TEST(test_descriptor_that_is_cut_is_refused),
        TEST(test_descriptor_that_is_tampered_with_is_read_or_refused),
        TEST(test_descriptor_nested_too_deep_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
