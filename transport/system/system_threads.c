/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Threads of the operating system's table: pthreads that start with every signal
 * blocked, so that none of the program's handlers ever runs on one of them.
 * Knows nothing of what a thread does.
 */

#include "transport/system/system_linux.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct bow_thread {
    pthread_t id;
    void (*run)(void *argument);
    void *argument;
    char name[BOW_THREAD_NAME_BYTES];
};

/* `thread` may be freed by run() itself, through thread_detach(). */
static void *thread_main(void *argument)
{
    struct bow_thread *thread = argument;

    if (thread->name[0] != '\0') {
        pthread_setname_np(pthread_self(), thread->name);
    }
    thread->run(thread->argument);
    return NULL;
}

static int set_attributes(pthread_attr_t *attributes, const struct bow_thread_options *options)
{
    if (options->stack_bytes > 0) {
        int rc = pthread_attr_setstacksize(attributes, options->stack_bytes);
        if (rc != 0) {
            return -rc;
        }
    }
    if (options->cpu < 0) {
        return 0;
    }
    /* Sized for it: there are machines with more than a cpu_set_t has room for. */
    size_t size = CPU_ALLOC_SIZE((size_t)options->cpu + 1);
    cpu_set_t *cpus = CPU_ALLOC((size_t)options->cpu + 1);
    if (cpus == NULL) {
        return -ENOMEM;
    }
    CPU_ZERO_S(size, cpus);
    CPU_SET_S((size_t)options->cpu, size, cpus);
    int rc = -pthread_attr_setaffinity_np(attributes, size, cpus);
    CPU_FREE(cpus);
    return rc;
}

/* The new thread inherits the mask, so there is no instant in which a signal could reach it. */
static int create_blocked(struct bow_thread *thread, const pthread_attr_t *attributes)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread->id, attributes, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

int bow__linux_thread_start(void *user, const struct bow_thread_options *options,
                            void (*run)(void *argument), void *argument,
                            struct bow_thread **ret_thread)
{
    pthread_attr_t attributes;

    (void)user;
    struct bow_thread *thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return -ENOMEM;
    }
    thread->run = run;
    thread->argument = argument;
    memcpy(thread->name, options->name, sizeof(thread->name) - 1);
    int rc = -pthread_attr_init(&attributes);
    if (rc < 0) {
        goto free_thread;
    }
    rc = set_attributes(&attributes, options);
    if (rc == 0) {
        rc = create_blocked(thread, &attributes);
    }
    pthread_attr_destroy(&attributes);
    if (rc < 0) {
        goto free_thread;
    }
    *ret_thread = thread;
    return 0;

free_thread:
    free(thread);
    return rc;
}

void bow__linux_thread_join(void *user, struct bow_thread *thread)
{
    (void)user;
    pthread_join(thread->id, NULL);
    free(thread);
}

void bow__linux_thread_detach(void *user, struct bow_thread *thread)
{
    (void)user;
    pthread_detach(pthread_self());
    free(thread);
}
