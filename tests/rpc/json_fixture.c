/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The arena, the texts, and descriptors that are changed under way: they are constant, so the pages
 * they lie in are made writable first.
 */
#include "tests/rpc/json_fixture.h"
#include "google/protobuf/any.bow.h"
#include "google/protobuf/duration.bow.h"
#include "google/protobuf/empty.bow.h"
#include "google/protobuf/field_mask.bow.h"
#include "google/protobuf/struct.bow.h"
#include "google/protobuf/timestamp.bow.h"
#include "google/protobuf/wrappers.bow.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static bool infos_chosen = true;

const struct bow_file *const json_files[JSON_FILES] = {
    &json__file__json_2eproto,
    &google__protobuf__file__google_2fprotobuf_2fany_2eproto,
    &google__protobuf__file__google_2fprotobuf_2fduration_2eproto,
    &google__protobuf__file__google_2fprotobuf_2fempty_2eproto,
    &google__protobuf__file__google_2fprotobuf_2ffield_5fmask_2eproto,
    &google__protobuf__file__google_2fprotobuf_2fstruct_2eproto,
    &google__protobuf__file__google_2fprotobuf_2ftimestamp_2eproto,
    &google__protobuf__file__google_2fprotobuf_2fwrappers_2eproto,
};

void json_begin(struct json_fixture *f)
{
    test_alloc_init(&f->alloc);
    f->context = test_context_new(&f->alloc);
    f->arena = bow_arena_new(f->context, (size_t)8 << 20);
    assert_non_null(f->arena);
    f->options = (struct bow_json_options)BOW_JSON_OPTIONS_INIT;
    f->reason[0] = '\0';
}

void json_end(struct json_fixture *f)
{
    bow_arena_free(f->arena);
    test_context_end(f->context, &f->alloc);
}

/* In memory of its own, so that a read beyond it is seen. */
static int read_copy(struct json_fixture *f, const ProtobufCMessageDescriptor *type,
                     const char *text, ProtobufCMessage **ret_message)
{
    size_t len = strlen(text);
    uint8_t *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    int rc = bow_json_read(type, (struct bow_slice){copy, len}, &f->options, f->arena, ret_message,
                           f->reason, sizeof f->reason);
    free(copy);
    return rc;
}

void *json_read(struct json_fixture *f, const ProtobufCMessageDescriptor *type, const char *text)
{
    ProtobufCMessage *message = NULL;
    int rc = read_copy(f, type, text, &message);
    assert_string_equal(f->reason, "");
    assert_int_equal(rc, 0);
    assert_ptr_equal(message->descriptor, type);
    assert_int_equal(bow_message_check(message, NULL, 0), 0);
    return message;
}

void json_refuse(struct json_fixture *f, const ProtobufCMessageDescriptor *type, const char *text,
                 const char *reason)
{
    ProtobufCMessage *message = NULL;
    int rc = read_copy(f, type, text, &message);
    assert_string_equal(f->reason, reason);
    assert_int_equal(rc, -EBADMSG);
    assert_null(message);
}

const char *json_write(struct json_fixture *f, const void *message)
{
    struct bow_slice text;
    size_t len = 0;
    int rc = bow_json_write(message, &f->options, f->arena, &text, f->reason, sizeof f->reason);
    assert_string_equal(f->reason, "");
    assert_int_equal(rc, 0);
    assert_int_equal(text.data[text.len], '\0');
    char *exact = malloc(text.len + 1);
    assert_non_null(exact);
    assert_int_equal(bow_json_write_to(message, &f->options, exact, text.len + 1, &len, NULL, 0),
                     0);
    assert_int_equal(len, text.len);
    assert_memory_equal(exact, text.data, text.len + 1);
    assert_int_equal(bow_json_write_to(message, &f->options, exact, text.len, &len, NULL, 0),
                     -ENOSPC);
    assert_int_equal(len, text.len);
    free(exact);
    return (const char *)text.data;
}

void json_refuse_write(struct json_fixture *f, const void *message, const char *reason)
{
    struct bow_slice text = {NULL, 0};
    char room[4096];
    size_t len = 0;

    assert_int_equal(
        bow_json_write(message, &f->options, f->arena, &text, f->reason, sizeof f->reason),
        -EINVAL);
    assert_string_equal(f->reason, reason);
    assert_null(text.data);
    assert_int_equal(bow_json_write_to(message, &f->options, room, sizeof room, &len, f->reason,
                                       sizeof f->reason),
                     -EINVAL);
    assert_string_equal(f->reason, reason);
    assert_int_equal(len, 0);
}

void json_again(struct json_fixture *f, const ProtobufCMessageDescriptor *type, const char *text,
                const char *expected)
{
    assert_string_equal(json_write(f, json_read(f, type, text)), expected);
}

static void make_writable(const void *at, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)at & ~(page - 1), end = (uintptr_t)at + size;
    assert_int_equal(mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE), 0);
}

static void set_info(const ProtobufCMessageDescriptor *type, const struct bow_message_info *info)
{
    make_writable(type, sizeof *type);
    ((ProtobufCMessageDescriptor *)(uintptr_t)type)->reserved1 = (void *)(uintptr_t)info;
}

/* Imports that were seen are seen again, which does no harm: there are few. */
static void set_infos(const struct bow_file *file, bool has_infos)
{
    if (file == NULL) {
        return;
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        set_info(file->messages[i].descriptor, has_infos ? &file->messages[i] : NULL);
    }
    for (size_t i = 0; i < file->n_imports; i++) {
        set_infos(file->imports[i], has_infos);
    }
}

void json_choose_descriptors(int argc, char **argv)
{
    infos_chosen = argc < 2 || strcmp(argv[1], "plain") != 0;
    for (size_t i = 0; i < JSON_FILES; i++) {
        set_infos(json_files[i], infos_chosen);
    }
    set_infos(&json2__file__json2_2eproto, infos_chosen);
}

bool json_has_infos(void)
{
    return infos_chosen;
}

void json_make_secret(const ProtobufCMessageDescriptor *type, const char *field)
{
    const struct bow_message_info *info = type->reserved1;
    for (size_t i = 0; i < info->n_fields; i++) {
        if (strcmp(type->fields[i].name, field) == 0) {
            struct bow_field_info *secret = (struct bow_field_info *)(uintptr_t)&info->fields[i];
            make_writable(secret, sizeof *secret);
            secret->flags |= BOW_FIELD_SECRET;
            return;
        }
    }
    fail_msg("no field %s", field);
}
