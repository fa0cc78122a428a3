/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The files of Unix sockets: whose they are, who replaces a stale one, with which rights. */

#include "tests/support/forks.h"
#include "tests/support/net.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct fixture {
    struct net net;
    char folder[64];
    struct sockaddr_un un;
    char address[128];
    char lock[128];
    int n_closed;
    /* Another server, in a context of its own, that starts when this one is at that point. */
    struct bow_context *others;
    struct bow_acceptor *other;
    int other_error;
    char other_text[512];
    mode_t mode_at_listen;
};

static struct fixture *fixture_of(void *user)
{
    struct net *net = (struct net *)(void *)((char *)user - offsetof(struct net, t.fake));

    return (struct fixture *)(void *)((char *)net - offsetof(struct fixture, net));
}

static void begin(struct fixture *f)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;

    memset(f, 0, sizeof(*f));
    net_begin(&f->net);
    assert_int_equal(bow_context_new(&options, &f->others), 0);
    assert_non_null(mkdtemp(scratch_path(f->folder, sizeof(f->folder), "unix-file-XXXXXX")));
    f->un.sun_family = AF_UNIX;
    snprintf(f->un.sun_path, sizeof(f->un.sun_path), "%s/socket", f->folder);
    snprintf(f->address, sizeof(f->address), "unix:%s", f->un.sun_path);
    snprintf(f->lock, sizeof(f->lock), "%s.lock", f->un.sun_path);
}

static void end(struct fixture *f)
{
    bow_context_unref(f->others);
    assert_int_equal(access(f->lock, F_OK), -1);
    assert_int_equal(access(f->un.sun_path, F_OK), -1);
    assert_int_equal(rmdir(f->folder), 0);
    net_end(&f->net);
}

static struct bow_acceptor_options options_of(const struct fixture *f)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;

    options.address = f->address;
    options.loop = f->net.loop;
    return options;
}

static struct bow_acceptor *new_acceptor(struct fixture *f)
{
    const struct bow_acceptor_options options = options_of(f);
    struct bow_acceptor *acceptor = NULL;
    struct bow_transport_error error;

    if (bow_acceptor_new(f->net.t.context, &options, &acceptor, &error) < 0) {
        fail_msg("%s", error.text);
    }
    return acceptor;
}

static void assert_refused(struct fixture *f, int error, const char *text)
{
    const struct bow_acceptor_options options = options_of(f);
    struct bow_acceptor *acceptor = NULL;
    struct bow_transport_error reason;

    assert_int_equal(bow_acceptor_new(f->net.t.context, &options, &acceptor, &reason), error);
    if (strstr(reason.text, text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, reason.text);
    }
}

static void on_closed(void *user)
{
    (*(int *)user)++;
}

static void close_acceptor(struct fixture *f, struct bow_acceptor *acceptor)
{
    int n_closed = f->n_closed;

    bow_acceptor_close(acceptor, on_closed, &f->n_closed);
    net_run_until(&f->net, f->n_closed == n_closed + 1);
}

static void leave_stale(const struct fixture *f)
{
    int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(dead, (const struct sockaddr *)&f->un, sizeof(f->un)), 0);
    close(dead);
}

static bool is_served(const struct fixture *f)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_connected = connect(fd, (const struct sockaddr *)&f->un, sizeof(f->un)) == 0;

    close(fd);
    return is_connected;
}

static void test_unix_file_f53_that_of_a_successor_is_left(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    struct bow_acceptor *old = new_acceptor(&f);
    assert_int_equal(unlink(f.un.sun_path), 0); /* by hand */
    struct bow_acceptor *successor = new_acceptor(&f);
    close_acceptor(&f, old);
    assert_true(is_served(&f));
    close_acceptor(&f, successor);
    end(&f);
}

/* Somebody puts a file of another kind there. */
static void test_unix_file_f53_one_that_is_no_socket_is_left_at_the_end(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    struct bow_acceptor *acceptor = new_acceptor(&f);
    assert_int_equal(unlink(f.un.sun_path), 0);
    close(open(f.un.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close_acceptor(&f, acceptor);
    assert_int_equal(unlink(f.un.sun_path), 0);
    end(&f);
}

/* Races */

static void start_other(struct fixture *f)
{
    struct bow_acceptor_options options = options_of(f);
    struct bow_transport_error error = {0};

    if (f->other_error != 0 || f->other != NULL) {
        return; /* it has had its try */
    }
    f->other_error = bow_acceptor_new(f->others, &options, &f->other, &error);
    snprintf(f->other_text, sizeof(f->other_text), "%s", error.text);
}

static int connect_beside(void *user, int fd, const struct bow_sockaddr *address)
{
    int rc = bow_system_default()->connect(NULL, fd, address);

    start_other(fixture_of(user));
    return rc;
}

static int listen_beside(void *user, int fd, int backlog)
{
    struct fixture *f = fixture_of(user);
    struct stat made;

    assert_int_equal(lstat(f->un.sun_path, &made), 0);
    f->mode_at_listen = made.st_mode & 0777;
    start_other(f);
    return bow_system_default()->listen(NULL, fd, backlog);
}

static void expect_one(struct fixture *f)
{
    struct bow_acceptor *acceptor = new_acceptor(f);

    assert_int_equal(f->other_error, -EADDRINUSE);
    assert_non_null(strstr(f->other_text, "another server is starting there"));
    assert_true(is_served(f));
    close_acceptor(f, acceptor);
}

static void test_unix_file_f53_one_server_of_two_replaces_a_stale_one(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    leave_stale(&f);
    f.net.system.connect = connect_beside;
    expect_one(&f);
    end(&f);
}

static void test_unix_file_f53_one_not_yet_listened_on_is_not_taken_for_stale(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    f.net.system.listen = listen_beside;
    expect_one(&f);
    end(&f);
}

static void test_unix_file_f53_lock_of_a_crashed_server_is_no_obstacle(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    leave_stale(&f);
    int fd = open(f.lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    struct bow_acceptor *acceptor = new_acceptor(&f);
    close_acceptor(&f, acceptor);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0); /* of a file without a name */
    acceptor = new_acceptor(&f);
    close_acceptor(&f, acceptor);
    close(fd);
    fd = open(f.lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_refused(&f, -EADDRINUSE, "another server is starting there");
    close(fd);
    assert_int_equal(unlink(f.lock), 0);
    end(&f);
}

static void test_unix_file_f53_without_a_lock_nothing_is_replaced(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    assert_int_equal(mkdir(f.lock, 0700), 0);
    leave_stale(&f);
    assert_refused(&f, -EADDRINUSE, ".lock");
    assert_int_equal(unlink(f.un.sun_path), 0);
    struct bow_acceptor *acceptor = new_acceptor(&f);
    assert_true(is_served(&f));
    close_acceptor(&f, acceptor);
    assert_int_equal(rmdir(f.lock), 0);
    end(&f);
}

/* Rights */

static void test_unix_file_f53_rights_are_in_force_before_it_listens(void **state)
{
    struct fixture f;
    struct bow_acceptor *acceptor = NULL;
    struct stat made;
    bool is_root = geteuid() == 0;
    (void)state;
    begin(&f);
    struct bow_acceptor_options options = options_of(&f);
    assert_int_equal(options.unix_owner, (uid_t)-1);
    assert_int_equal(options.unix_group, (gid_t)-1);
    options.unix_mode = 0662; /* more than an umask leaves */
    options.unix_owner = is_root ? 12345 : geteuid();
    options.unix_group = is_root ? 12346 : getegid();
    f.other_error = -1; /* nobody else, here */
    f.net.system.listen = listen_beside;
    assert_int_equal(bow_acceptor_new(f.net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(f.mode_at_listen, 0662);
    assert_int_equal(lstat(f.un.sun_path, &made), 0);
    assert_int_equal(made.st_uid, options.unix_owner);
    assert_int_equal(made.st_gid, options.unix_group);
    close_acceptor(&f, acceptor);
    end(&f);
}

static void test_unix_file_f53_rights_that_cannot_be_had_leave_nothing(void **state)
{
    struct fixture f;
    struct bow_acceptor *acceptor = NULL;
    struct bow_transport_error error;
    (void)state;
    begin(&f);
    struct bow_acceptor_options options = options_of(&f);
    options.unix_mode = 01000;
    assert_int_equal(bow_acceptor_new(f.net.t.context, &options, &acceptor, &error), -EINVAL);
    assert_non_null(strstr(error.text, "at most 0777"));
    options.unix_mode = 0;
    if (geteuid() != 0) {
        options.unix_owner = 0;
        assert_int_equal(bow_acceptor_new(f.net.t.context, &options, &acceptor, &error), -EPERM);
        assert_non_null(strstr(error.text, "changing the owner of unix:"));
    }
    assert_null(acceptor);
    end(&f);
}

/* A child of fork() lets go of what the parent listens with. */
static void test_unix_file_f53_that_of_the_parent_process_is_left(void **state)
{
    struct fixture f;
    struct forks forks;
    (void)state;
    begin(&f);
    struct bow_acceptor *acceptor = new_acceptor(&f);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    net_turn(&f.net);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        bow_acceptor_close(acceptor, on_closed, &f.n_closed);
        FORKS_EXPECT(f.n_closed == 1);
        _exit(0);
    }
    forks_end(&forks);
    assert_true(is_served(&f));
    close_acceptor(&f, acceptor);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unix_file_f53_that_of_a_successor_is_left),
        cmocka_unit_test(test_unix_file_f53_one_that_is_no_socket_is_left_at_the_end),
        cmocka_unit_test(test_unix_file_f53_one_server_of_two_replaces_a_stale_one),
        cmocka_unit_test(test_unix_file_f53_one_not_yet_listened_on_is_not_taken_for_stale),
        cmocka_unit_test(test_unix_file_f53_lock_of_a_crashed_server_is_no_obstacle),
        cmocka_unit_test(test_unix_file_f53_without_a_lock_nothing_is_replaced),
        cmocka_unit_test(test_unix_file_f53_rights_are_in_force_before_it_listens),
        cmocka_unit_test(test_unix_file_f53_rights_that_cannot_be_had_leave_nothing),
        cmocka_unit_test(test_unix_file_f53_that_of_the_parent_process_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
