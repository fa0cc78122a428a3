/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A loop or an executor, whichever a place names. */

#include "transport/place.h"
#include "transport/executor.h"
#include "transport/loop.h"

void bow__place_hold(const struct bow__place *place)
{
    if (place->loop != NULL) {
        bow__loop_hold(place->loop);
    }
    if (place->executor != NULL) {
        bow__executor_hold(place->executor);
    }
}

void bow__place_release(const struct bow__place *place)
{
    if (place->loop != NULL) {
        bow__loop_release(place->loop);
    }
    if (place->executor != NULL) {
        bow__executor_release(place->executor);
    }
}

bool bow__place_is_here(const struct bow__place *place)
{
    return (place->loop != NULL && bow_loop_in_loop(place->loop)) ||
           (place->executor != NULL && bow_executor_in_executor(place->executor));
}

bool bow__place_is_foreign(const struct bow__place *place)
{
    return (place->loop != NULL && bow__loop_is_foreign(place->loop)) ||
           (place->executor != NULL && bow__executor_is_foreign(place->executor));
}

bool bow__place_take(const struct bow__place *place)
{
    return place->loop != NULL ? bow__loop_take_place(place->loop)
                               : bow__executor_take_place(place->executor);
}

void bow__place_leave(const struct bow__place *place)
{
    if (place->loop != NULL) {
        bow__loop_leave_place(place->loop);
    } else {
        bow__executor_leave_place(place->executor);
    }
}

int bow__place_post(const struct bow__place *place, struct bow_task *task)
{
    return place->loop != NULL ? bow__loop_post_internal(place->loop, task, 0)
                               : bow__executor_post_internal(place->executor, task);
}

void bow__place_reject(const struct bow__place *place, const char *name, bow_task_fn fn, void *user)
{
    if (place->loop != NULL) {
        bow__loop_reject(place->loop, name, fn, user);
    } else {
        bow__executor_reject(place->executor, name, fn, user);
    }
}
