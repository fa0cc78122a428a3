/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client of a file of addresses: written anew, replaced, deleted, behind links that are swapped,
 * and with lines that are none.
 */

#include "list_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int setup(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/bowline-names-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return list_setup(state);
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    return list_teardown(state);
}

static void path_of(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
}

static void write_text(const char *name, const char *text)
{
    char path[256];

    path_of(name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The address of one server. */
static void write_server(struct list *list, const char *name, int i)
{
    char text[256];

    snprintf(text, sizeof(text), "# server %d\n%s weight=1\n", i, list->servers[i]->address);
    write_text(name, text);
}

static void move(const char *from, const char *to)
{
    char paths[2][256];

    path_of(from, paths[0]);
    path_of(to, paths[1]);
    assert_int_equal(rename(paths[0], paths[1]), 0);
}

static void link_to(const char *what, const char *name)
{
    char path[256];

    path_of(name, path);
    assert_int_equal(symlink(what, path), 0);
}

static void new_client(struct list *list, const char *name)
{
    snprintf(list->target, sizeof(list->target), "%sfile://%s/%s", calls_is_grpc() ? "grpc:" : "",
             folder, name);
    list_new_client(list, NULL);
}

/* Others may answer before. */
static void expect_moved_to(struct list *list, int i)
{
    list_say_until(list, i, list_said(list, i) + 1);
}

static void test_file_names_are_read_again_as_they_change(void **state)
{
    struct list *list = *state;
    char path[256];

    write_server(list, "shop", 0);
    new_client(list, "shop");
    expect_moved_to(list, 0);
    write_server(list, "shop", 1);
    expect_moved_to(list, 1);
    write_server(list, "new", 2); /* put in its place */
    move("new", "shop");
    expect_moved_to(list, 2);
    path_of("shop", path);
    assert_int_equal(unlink(path), 0);
    expect_moved_to(list, 2); /* the last good one */
    write_server(list, "shop", 0);
    expect_moved_to(list, 0);
}

/* A ConfigMap of Kubernetes: shop -> ..data/shop, ..data -> ..1, and then ..2. */
static void test_file_names_are_followed_through_links(void **state)
{
    struct list *list = *state;
    char path[256];

    for (int i = 1; i <= 2; i++) {
        char name[16];
        snprintf(name, sizeof(name), "..%d", i);
        path_of(name, path);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    write_server(list, "..1/shop", 1);
    write_server(list, "..2/shop", 2);
    link_to("..1", "..data");
    link_to("..data/shop", "shop");
    new_client(list, "shop");
    expect_moved_to(list, 1);
    link_to("..2", "..tmp");
    move("..tmp", "..data");
    expect_moved_to(list, 2);
    write_server(list, "..2/shop", 0); /* in a folder that was not there at first */
    expect_moved_to(list, 0);
}

static void test_file_names_with_a_bad_line_change_nothing(void **state)
{
    struct list *list = *state;
    char text[256];

    snprintf(text, sizeof(text), "%s\n\nhere\n", list->servers[1]->address);
    write_text("shop", text);
    new_client(list, "shop");
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "resolving ");
    list_expect_words(list, "line 3: \"here\": no port");
    write_server(list, "shop", 0);
    while (list_say(list, NULL) != BOW_OK) {
    }
    int before = list_said(list, 1);
    write_text("shop", text);
    for (int n = 0; n < 20; n++) {
        assert_int_equal(list_say(list, NULL), BOW_OK);
    }
    assert_int_equal(list_said(list, 1), before);
    write_server(list, "shop", 2);
    expect_moved_to(list, 2);
}

static void test_file_names_that_are_not_there_are_waited_for(void **state)
{
    struct list *list = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    new_client(list, "shop");
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "opening it: ENOENT");
    write_server(list, "shop", 1);
    options.wait_for_ready = true;
    assert_int_equal(list_say(list, &options), BOW_OK);
    assert_int_equal(list_said(list, 1), 1);
}

static void test_file_names_are_of_plain_files(void **state)
{
    struct list *list = *state;
    char path[256];

    path_of("fifo", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    new_client(list, "fifo");
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "it is no plain file");
    list_free_client(list);
    path_of("large", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), (1 << 20) + 1), 0);
    fclose(file);
    new_client(list, "large");
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "BOW_LIMIT_ADDRESS_FILE_BYTES");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file_names_are_read_again_as_they_change),
        TEST(test_file_names_are_followed_through_links),
        TEST(test_file_names_with_a_bad_line_change_nothing),
        TEST(test_file_names_that_are_not_there_are_waited_for),
        TEST(test_file_names_are_of_plain_files),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
