/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_JSON_FIXTURE_H
#define BOWLINE_TESTS_RPC_JSON_FIXTURE_H

/*
 * One test of JSON: an arena of a context that counts, and assertions on texts. TEXT("{}") is a
 * slice over a literal.
 */

#include "json.bow.h"
#include "json2.bow.h"
#include "tests/support/alloc.h"
#include <bowline/json.h>
#include <bowline/limits.h>
#include <bowline/message.h>
#include <bowline/message_field.h>
#include <bowline/service.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT(literal) ((struct bow_slice){(const uint8_t *)(literal), sizeof(literal) - 1})

struct json_fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow_arena *arena;
    struct bow_json_options options;
    char reason[512];
};

/** The file of these messages and those of protobuf's own types, for `options.files`; a linker
 * takes the latter from an archive only for who names them. */
#define JSON_FILES 8
extern const struct bow_file *const json_files[JSON_FILES];

void json_begin(struct json_fixture *f);
void json_end(struct json_fixture *f);

/** Read what must be good. */
void *json_read(struct json_fixture *f, const ProtobufCMessageDescriptor *type, const char *text);
/** Read what must be refused for exactly `reason`. */
void json_refuse(struct json_fixture *f, const ProtobufCMessageDescriptor *type, const char *text,
                 const char *reason);
/** The text of a message that must have one; into an arena and a caller's memory alike. */
const char *json_write(struct json_fixture *f, const void *message);
/** Write what must be refused for exactly `reason`, in both ways. */
void json_refuse_write(struct json_fixture *f, const void *message, const char *reason);
/** Read `text`, and write it again as `expected`. */
void json_again(struct json_fixture *f, const ProtobufCMessageDescriptor *type, const char *text,
                const char *expected);

/** By the arguments of a test: whether descriptors say what Bowline's generator does ("bowline"),
 * or what protoc-gen-c does ("plain"). Call it first. */
void json_choose_descriptors(int argc, char **argv);
/** What was chosen. */
bool json_has_infos(void);
/** Make a field secret, which no option of these tests' .proto says. */
void json_make_secret(const ProtobufCMessageDescriptor *type, const char *field);

#endif
