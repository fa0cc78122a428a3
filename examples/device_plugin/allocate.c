/* SPDX-License-Identifier: 0BSD */
/* Owns the answer to Allocate. All of it lies in the call's memory, and goes with the call.
 * Functions that return a pointer have failed the call when it is NULL: its memory is gone then. */

#include "allocate.h"
#include <bowline/call.h>
#include <stdlib.h>
#include <string.h>

/* What one container is told. */
struct allocation {
    V1beta1__ContainerAllocateResponse response;
    V1beta1__ContainerAllocateResponse__EnvsEntry env;
    V1beta1__ContainerAllocateResponse__EnvsEntry *envs[1];
    V1beta1__Mount mount;
    V1beta1__Mount *mounts[1];
    V1beta1__DeviceSpec *devices[];
};

static void *fail_for_memory(struct bow_call *call)
{
    bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory for the answer");
    return NULL;
}

/* Runtimes want the node itself, where the device's name is a link to it. */
static char *find_node(struct bow_call *call, const char *path)
{
    char *node = realpath(path, NULL);

    if (node == NULL) {
        bow_call_fail(call, BOW_FAILED_PRECONDITION, "the device %s is gone", path);
        return NULL;
    }
    char *mine = bow_call_strdup(call, node);
    free(node);
    return mine != NULL ? mine : fail_for_memory(call);
}

static V1beta1__DeviceSpec *make_device(struct bow_call *call, struct devices *devices,
                                        const char *id)
{
    if (devices_find(devices, id) == NULL) {
        bow_call_fail(call, BOW_NOT_FOUND, "there is no device '%s'", id);
        return NULL;
    }
    V1beta1__DeviceSpec *spec = bow_call_alloc(call, sizeof(*spec));
    char *path = bow_call_printf(call, "%s/%s", devices->folder, id);
    if (spec == NULL || path == NULL) {
        return fail_for_memory(call);
    }
    char *node = find_node(call, path);
    if (node == NULL) {
        return NULL;
    }
    *spec = (V1beta1__DeviceSpec)V1BETA1__DEVICE_SPEC__INIT;
    spec->container_path = path;
    spec->host_path = node;
    spec->permissions = "rw";
    return spec;
}

/* As the container sees them, with commas between. */
static char *join_paths(struct bow_call *call, V1beta1__DeviceSpec *const *devices, size_t n)
{
    size_t size = 1;

    for (size_t i = 0; i < n; i++) {
        size += strlen(devices[i]->container_path) + 1;
    }
    char *text = bow_call_alloc(call, size);
    if (text == NULL) {
        return fail_for_memory(call);
    }
    char *at = text;
    *at = '\0';
    for (size_t i = 0; i < n; i++) {
        at = stpcpy(at, i > 0 ? "," : "");
        at = stpcpy(at, devices[i]->container_path);
    }
    return text;
}

static void fill_env(struct allocation *allocation, const char *name, char *value)
{
    allocation->env = (V1beta1__ContainerAllocateResponse__EnvsEntry)
        V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT;
    allocation->env.key = (char *)name;
    allocation->env.value = value;
    allocation->envs[0] = &allocation->env;
    allocation->response.n_envs = 1;
    allocation->response.envs = allocation->envs;
}

static void fill_mount(struct allocation *allocation, const char *path)
{
    allocation->mount = (V1beta1__Mount)V1BETA1__MOUNT__INIT;
    allocation->mount.container_path = (char *)path;
    allocation->mount.host_path = (char *)path;
    allocation->mount.read_only = true;
    allocation->mounts[0] = &allocation->mount;
    allocation->response.n_mounts = 1;
    allocation->response.mounts = allocation->mounts;
}

static V1beta1__ContainerAllocateResponse *answer(struct bow_call *call,
                                                  const V1beta1__ContainerAllocateRequest *request,
                                                  struct devices *devices,
                                                  const struct allocate_options *options)
{
    size_t n = request->n_devices_ids;
    struct allocation *allocation =
        bow_call_alloc(call, sizeof(*allocation) + n * sizeof(allocation->devices[0]));

    if (allocation == NULL) {
        return fail_for_memory(call);
    }
    allocation->response =
        (V1beta1__ContainerAllocateResponse)V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    for (size_t i = 0; i < n; i++) {
        V1beta1__DeviceSpec *device = make_device(call, devices, request->devices_ids[i]);
        if (device == NULL) {
            return NULL;
        }
        allocation->devices[i] = device;
    }
    allocation->response.n_devices = n;
    allocation->response.devices = allocation->devices;
    char *paths = join_paths(call, allocation->devices, n);
    if (paths == NULL) {
        return NULL;
    }
    fill_env(allocation, options->env, paths);
    if (options->mount != NULL) {
        fill_mount(allocation, options->mount);
    }
    return &allocation->response;
}

void allocate(struct bow_call *call, const V1beta1__AllocateRequest *request,
              struct devices *devices, const struct allocate_options *options)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    size_t n = request->n_container_requests;

    response.container_responses =
        bow_call_alloc(call, (n + 1) * sizeof(response.container_responses[0]));
    if (response.container_responses == NULL) {
        fail_for_memory(call);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        V1beta1__ContainerAllocateResponse *container =
            answer(call, request->container_requests[i], devices, options);
        if (container == NULL) {
            return;
        }
        response.container_responses[i] = container;
    }
    response.n_container_responses = n;
    v1beta1__device_plugin__allocate__reply(call, &response);
}
