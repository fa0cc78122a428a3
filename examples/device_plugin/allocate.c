/* SPDX-License-Identifier: 0BSD */
/* Owns the answer to Allocate. It is made in the call's memory, and goes with the call; what there
 * is no memory for is remembered, and the reply says so. Functions that return false have failed
 * the call: its memory is gone then. */

#include "allocate.h"
#include <bowline/call.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runtimes want the node itself, where the device's name is a link to it. */
static bool add_device(struct bow_call *call, V1beta1__ContainerAllocateResponse *container,
                       struct devices *devices, const char *id)
{
    struct bow_arena *arena = bow_call_arena(call);
    char path[PATH_MAX];

    if (devices_find(devices, id) == NULL) {
        bow_call_fail(call, BOW_NOT_FOUND, "there is no device '%s'", id);
        return false;
    }
    snprintf(path, sizeof(path), "%s/%s", devices->folder, id);
    char *node = realpath(path, NULL);
    if (node == NULL) {
        bow_call_fail(call, BOW_FAILED_PRECONDITION, "the device %s is gone", path);
        return false;
    }
    V1beta1__DeviceSpec *spec = v1beta1__container_allocate_response__add_devices(container, arena);
    v1beta1__device_spec__set_container_path(spec, path, arena);
    v1beta1__device_spec__set_host_path(spec, node, arena);
    v1beta1__device_spec__set_permissions_ref(spec, "rw");
    free(node);
    return true;
}

/* As the container sees them, with commas between; NULL without memory. */
static char *join_paths(struct bow_call *call, const struct devices *devices, char *const *ids,
                        size_t n)
{
    size_t size = 1;

    for (size_t i = 0; i < n; i++) {
        size += strlen(devices->folder) + strlen(ids[i]) + 2;
    }
    char *text = bow_call_alloc(call, size);
    if (text == NULL) {
        return NULL;
    }
    char *at = text;
    *at = '\0';
    for (size_t i = 0; i < n; i++) {
        at += sprintf(at, "%s%s/%s", i > 0 ? "," : "", devices->folder, ids[i]);
    }
    return text;
}

static void add_mount(V1beta1__ContainerAllocateResponse *container, const char *path,
                      struct bow_arena *arena)
{
    V1beta1__Mount *mount = v1beta1__container_allocate_response__add_mounts(container, arena);

    v1beta1__mount__set_container_path_ref(mount, path);
    v1beta1__mount__set_host_path_ref(mount, path);
    v1beta1__mount__set_read_only(mount, true);
}

static bool answer(struct bow_call *call, V1beta1__ContainerAllocateResponse *container,
                   const V1beta1__ContainerAllocateRequest *request, struct devices *devices,
                   const struct allocate_options *options)
{
    struct bow_arena *arena = bow_call_arena(call);
    size_t n = request->n_devices_ids;

    for (size_t i = 0; i < n; i++) {
        if (!add_device(call, container, devices, request->devices_ids[i])) {
            return false;
        }
    }
    v1beta1__container_allocate_response__put_envs(
        container, options->env, join_paths(call, devices, request->devices_ids, n), arena);
    if (options->mount != NULL) {
        add_mount(container, options->mount, arena);
    }
    return true;
}

void allocate(struct bow_call *call, const V1beta1__AllocateRequest *request,
              struct devices *devices, const struct allocate_options *options)
{
    struct bow_arena *arena = bow_call_arena(call);
    V1beta1__AllocateResponse *response = v1beta1__allocate_response__new(arena);

    for (size_t i = 0; i < request->n_container_requests; i++) {
        V1beta1__ContainerAllocateResponse *container =
            v1beta1__allocate_response__add_container_responses(response, arena);
        if (!answer(call, container, request->container_requests[i], devices, options)) {
            return;
        }
    }
    v1beta1__device_plugin__allocate__reply(call, response);
}
