/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A message encoded once: its bytes, its references, what cannot be encoded.
 */

#include "protos/codec2.pb-c.h"
#include "protos/codec3.pb-c.h"
#include "rpc/core/message/payload.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
};

static int setup(void **state)
{
    static struct fixture fixture;

    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    test_context_end(fixture->context, &fixture->alloc);
    return 0;
}

static void test_payload_new_encodes_the_message(void **state)
{
    struct fixture *t = *state;
    Codec3__HelloRequest request = CODEC3__HELLO_REQUEST__INIT;
    struct bow_payload *payload = NULL;
    uint8_t packed[64];
    char name[] = "anna";

    request.name = name;
    request.age = 7;
    assert_int_equal(bow_payload_new(t->context, &request.base, &payload), 0);
    size_t n = codec3__hello_request__pack(&request, packed);
    struct bow_slice bytes = bow__payload_bytes(payload);
    assert_int_equal(bytes.len, n);
    assert_memory_equal(bytes.data, packed, n);
    bow_payload_unref(payload);
}

static void test_payload_empty_message_is_a_payload(void **state)
{
    struct fixture *t = *state;
    Codec3__Empty empty = CODEC3__EMPTY__INIT;
    struct bow_payload *payload = NULL;

    assert_int_equal(bow_payload_new(t->context, &empty.base, &payload), 0);
    assert_int_equal(bow__payload_bytes(payload).len, 0);
    bow_payload_unref(payload);
    bow_payload_unref(NULL);
}

static void test_payload_lives_until_its_last_holder(void **state)
{
    struct fixture *t = *state;
    Codec3__HelloRequest request = CODEC3__HELLO_REQUEST__INIT;
    struct bow_payload *payload = NULL;

    request.age = 1;
    assert_int_equal(bow_payload_new(t->context, &request.base, &payload), 0);
    assert_ptr_equal(bow_payload_ref(payload), payload);
    struct bow__block *sent = bow__block_ref(payload->block);
    bow_payload_unref(payload);
    bow_payload_unref(payload);
    assert_true(bow_context_bytes(t->context) > 0);
    assert_int_equal(sent->data[BOW__PAYLOAD_OFFSET],
                     0x18); /* the stream's bytes are there still */
    bow__block_unref(sent);
    assert_int_equal(bow_context_bytes(t->context), 0);
}

static void test_payload_of_what_cannot_be_encoded_is_refused(void **state)
{
    struct fixture *t = *state;
    Codec2__Required required = CODEC2__REQUIRED__INIT;
    struct bow_payload *payload = NULL;

    required.name = NULL;
    assert_int_equal(bow_payload_new(t->context, &required.base, &payload), -EINVAL);
    assert_null(payload);
}

static void test_payload_without_memory_is_refused(void **state)
{
    struct fixture *t = *state;
    Codec3__Empty empty = CODEC3__EMPTY__INIT;
    struct bow_payload *payload = NULL;

    t->alloc.fail_at = t->alloc.n_calls + 1;
    assert_int_equal(bow_payload_new(t->context, &empty.base, &payload), -ENOMEM);
    assert_null(payload);
}

/* As when two loops have compressed it at once. */
static void test_payload_second_of_the_same_form_is_dropped(void **state)
{
    struct fixture *t = *state;
    Codec3__Empty empty = CODEC3__EMPTY__INIT;
    struct bow_payload *payload = NULL;
    struct bow__form forms[2] = {{.encoding = BOW__ENCODING_ZSTD, .len = 1},
                                 {.encoding = BOW__ENCODING_ZSTD, .len = 2}};

    assert_int_equal(bow_payload_new(t->context, &empty.base, &payload), 0);
    for (int i = 0; i < 2; i++) {
        forms[i].block = bow__block_new(t->context, 10);
    }
    const struct bow__form *first = bow__payload_add_form(payload, &forms[0]);
    assert_ptr_equal(bow__payload_add_form(payload, &forms[1]), first);
    assert_int_equal(first->len, 1);
    assert_null(first->next);
    bow_payload_unref(payload);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_payload_new_encodes_the_message),
        TEST(test_payload_empty_message_is_a_payload),
        TEST(test_payload_lives_until_its_last_holder),
        TEST(test_payload_second_of_the_same_form_is_dropped),
        TEST(test_payload_of_what_cannot_be_encoded_is_refused),
        TEST(test_payload_without_memory_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
