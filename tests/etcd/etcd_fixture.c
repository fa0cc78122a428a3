/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the tests share. See the header. */

#include "etcd_fixture.h"

struct bow_test *test;
struct fake_etcd fake;
struct bow_etcd *etcd;
char logged[4096];

static void log_line(enum bow_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    size_t len = strlen(logged);
    (void)snprintf(logged + len, sizeof(logged) - len, "%s\n", line);
}

void run(void)
{
    assert_int_equal(bow_test_run(test), 0);
}

void advance(uint64_t ns)
{
    assert_int_equal(bow_test_advance(test, ns), 0);
}

int setup(void **state)
{
    struct bow_test_options options = BOW_TEST_OPTIONS_INIT;

    (void)state;
    logged[0] = '\0';
    options.log = log_line;
    assert_int_equal(bow_test_new(&options, &test), 0);
    assert_int_equal(fake_etcd_start(&fake, test), 0);
    etcd = NULL;
    return 0;
}

int teardown(void **state)
{
    (void)state;
    bow_etcd_unref(etcd);
    (void)bow_test_run(test);
    fake_etcd_stop(&fake);
    assert_int_equal(bow_test_end(test), 0);
    return 0;
}

void make(void)
{
    struct bow_etcd_options options = fake_etcd_options(&fake);

    assert_int_equal(bow_etcd_new(&options, &etcd), 0);
}

static void on_update(struct bow_etcd_watch *watch, const struct bow_etcd_update *update,
                      void *user)
{
    struct heard *heard = user;

    heard->n_updates++;
    heard->revision = update->revision;
    heard->n_servers = update->n_servers;
    heard->last[0] = '\0';
    for (size_t i = 0; i < update->n_servers; i++) {
        size_t len = strlen(heard->last);
        (void)snprintf(heard->last + len, sizeof(heard->last) - len, "%s ",
                       update->servers[i].address);
    }
    if (update->error != NULL) {
        size_t len = strlen(heard->last);
        heard->n_errors++;
        (void)snprintf(heard->last + len, sizeof(heard->last) - len, "error: %s", update->error);
    }
    if (heard->ends_inside) {
        heard->ends_inside = false;
        bow_etcd_unwatch(watch);
    }
}

static void on_watch_closed(struct bow_etcd_watch *watch, void *user)
{
    (void)watch;
    ((struct heard *)user)->n_closed++;
}

const struct bow_etcd_watch_events watch_events = {on_update, on_watch_closed};

struct bow_etcd_watch *watch_it(struct heard *heard)
{
    struct bow_etcd_watch *watch;

    assert_int_equal(bow_etcd_watch(etcd, "shop", &watch_events, heard, &watch), 0);
    return watch;
}

void put(const char *address)
{
    char key[64];
    char value[128];

    (void)snprintf(key, sizeof(key), "shop/%s", address);
    (void)snprintf(value, sizeof(value), JSON, address, "null");
    fake_etcd_put(&fake, key, value);
}

void end_watch(struct bow_etcd_watch *watch, struct heard *heard)
{
    bow_etcd_unwatch(watch);
    run();
    assert_int_equal(heard->n_closed, 1);
}

static void on_registered(struct bow_etcd_registration *registration, int64_t lease, void *user)
{
    struct heard *heard = user;

    heard->n_registered++;
    heard->lease = lease;
    if (heard->ends_inside) {
        heard->ends_inside = false;
        bow_etcd_unregister(registration);
    }
}

static void on_registration_lost(struct bow_etcd_registration *registration, const char *why,
                                 void *user)
{
    struct heard *heard = user;

    (void)registration;
    heard->n_lost++;
    (void)snprintf(heard->last, sizeof(heard->last), "%s", why);
}

static void on_registration_error(struct bow_etcd_registration *registration,
                                  const struct bow_status *status, void *user)
{
    struct heard *heard = user;

    (void)registration;
    heard->n_errors++;
    (void)snprintf(heard->last, sizeof(heard->last), "%s", status->message);
}

static void on_registration_closed(struct bow_etcd_registration *registration, void *user)
{
    (void)registration;
    ((struct heard *)user)->n_closed++;
}

const struct bow_etcd_registration_events registration_events = {
    on_registered, on_registration_lost, on_registration_error, on_registration_closed};

struct bow_etcd_registration_options mine(struct heard *heard)
{
    struct bow_etcd_registration_options options = BOW_ETCD_REGISTRATION_OPTIONS_INIT;

    options.service = "shop";
    options.address = "10.0.0.7:50051";
    options.ttl_s = 9;
    options.events = &registration_events;
    options.user = heard;
    return options;
}

struct bow_etcd_registration *register_it(struct heard *heard)
{
    struct bow_etcd_registration_options options = mine(heard);
    struct bow_etcd_registration *registration;

    assert_int_equal(bow_etcd_register(etcd, &options, &registration), 0);
    return registration;
}

void end_registration(struct bow_etcd_registration *registration, struct heard *heard)
{
    bow_etcd_unregister(registration);
    run();
    assert_int_equal(heard->n_closed, 1);
}

static void on_acquired(struct bow_etcd_lock *lock, int64_t token, void *user)
{
    struct heard *heard = user;

    heard->n_acquired++;
    heard->token = token;
    if (heard->ends_inside) {
        heard->ends_inside = false;
        bow_etcd_unlock(lock);
    }
}

static void on_lock_lost(struct bow_etcd_lock *lock, const char *why, void *user)
{
    struct heard *heard = user;

    (void)lock;
    heard->n_lost++;
    (void)snprintf(heard->last, sizeof(heard->last), "%s", why);
}

static void on_lock_error(struct bow_etcd_lock *lock, const struct bow_status *status, void *user)
{
    (void)lock;
    (void)status;
    ((struct heard *)user)->n_errors++;
}

static void on_lock_closed(struct bow_etcd_lock *lock, void *user)
{
    (void)lock;
    ((struct heard *)user)->n_closed++;
}

const struct bow_etcd_lock_events lock_events = {on_acquired, on_lock_lost, on_lock_error,
                                                 on_lock_closed};

struct bow_etcd_lock *lock_it(struct heard *heard)
{
    struct bow_etcd_lock_options options = BOW_ETCD_LOCK_OPTIONS_INIT;
    struct bow_etcd_lock *lock;

    options.name = "leader";
    options.value = "me";
    options.ttl_s = 9;
    options.events = &lock_events;
    options.user = heard;
    assert_int_equal(bow_etcd_lock(etcd, &options, &lock), 0);
    return lock;
}

void end_lock(struct bow_etcd_lock *lock, struct heard *heard)
{
    bow_etcd_unlock(lock);
    run();
    assert_int_equal(heard->n_closed, 1);
}
