/* SPDX-License-Identifier: 0BSD */
/*
 * Replies from another thread: the handler hands its call on and returns, a worker of the program's
 * own answers when it is done. Usage: deferred NAME...
 */

#include "shop.h"
#include <bowline/call.h>
#include <bowline/context.h>
#include <bowline/server.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

struct job {
    struct job *next;
    struct bow_call *call;
    const char *name;
};

struct worker {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct job *first;
    bool is_over;
};

/* On the loop: a call is the handler's until it is answered, so it may be handed to anybody. */
static void quote(struct bow_call *call, const Shop__Item *item, void *user)
{
    struct worker *worker = user;
    struct job *job = bow_call_alloc(call, sizeof(*job)); /* goes with the call */
    if (job == NULL) {
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory for the job");
        return;
    }
    *job = (struct job){.call = call, .name = item->name}; /* the request goes with it too */
    pthread_mutex_lock(&worker->mutex);
    job->next = worker->first;
    worker->first = job;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

/* NULL at the end, when all are answered. */
static struct job *take(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    while (worker->first == NULL && !worker->is_over) {
        pthread_cond_wait(&worker->changed, &worker->mutex);
    }
    struct job *job = worker->first;
    worker->first = job != NULL ? job->next : NULL;
    pthread_mutex_unlock(&worker->mutex);
    return job;
}

static void *work(void *user)
{
    struct worker *worker = user;
    struct job *job;
    while ((job = take(worker)) != NULL) {
        Shop__Offer offer = SHOP__OFFER__INIT;
        if (bow_call_is_cancelled(job->call)) {
            /* Nobody waits any more, so the work may be spared; answered it must be. */
            bow_call_fail(job->call, BOW_CANCELLED, "too late");
            continue;
        }
        offer.text = bow_call_printf(job->call, "no %s today", job->name);
        shop__front__quote__reply(job->call, &offer); /* `job` is gone with it */
    }
    return NULL;
}

static void end(struct worker *worker, pthread_t thread)
{
    pthread_mutex_lock(&worker->mutex);
    worker->is_over = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const struct shop__front__handlers handlers = {.quote = quote};
    struct worker worker = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;
    pthread_t thread;
    int failed = 1;
    options.listen = SHOP_FRONT;
    if (bow_context_new(NULL, &options.context) < 0 ||
        pthread_create(&thread, NULL, work, &worker) != 0) {
        return 1;
    }
    if (bow_server_new(&options, &server) == 0 &&
        shop__front__serve(server, &handlers, &worker) == 0 && shop_start_front(server) == 0) {
        failed = 0;
        for (int i = 1; i < argc; i++) {
            failed |= shop_ask(options.context, argv[i]);
        }
    }
    end(&worker, thread);    /* answers what is left, */
    bow_server_free(server); /* and only then is there none who waits for it */
    bow_context_unref(options.context);
    return failed;
}
