/* SPDX-License-Identifier: 0BSD */
/* Owns the client of kubelet, and when it calls. */

#include "kubelet.h"
#include "deviceplugin.bow.h"
#include <errno.h>
#include <stdio.h>

#define VERSION "v1beta1"
#define SECOND_NS UINT64_C(1000000000)

/* kubelet went away, or is not itself yet. What else it says is meant for good. */
static bool passes(enum bow_code code)
{
    return code == BOW_UNAVAILABLE || code == BOW_CANCELLED || code == BOW_DEADLINE_EXCEEDED;
}

static void on_answer(struct bow_result *result, const V1beta1__Empty *reply, void *user)
{
    struct kubelet *kubelet = user;

    kubelet->call = 0;
    if (kubelet->closed) {
        return;
    }
    if (kubelet->again) {
        kubelet->again = false;
        bow_timer_start(&kubelet->timer, 0);
        return;
    }
    if (reply == NULL && passes(result->status.code)) {
        bow_timer_start(&kubelet->timer, SECOND_NS);
        return;
    }
    kubelet->options.told(reply != NULL ? NULL : &result->status, kubelet->options.user);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct kubelet *kubelet = user;
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    struct bow_call_options call = BOW_CALL_OPTIONS_INIT;

    request.version = VERSION;
    request.endpoint = (char *)kubelet->options.endpoint;
    request.resource_name = (char *)kubelet->options.resource;
    request.options = &options; /* all of them off, as the service has it */
    call.wait_for_ready = true;
    call.timeout_ns = BOW_NEVER;
    if (v1beta1__registration__register__start(kubelet->client, &request, &call, on_answer, kubelet,
                                               &kubelet->call) < 0) {
        bow_timer_start(timer, SECOND_NS); /* there was no memory for it */
    }
}

int kubelet_open(struct kubelet *kubelet, const struct kubelet_options *options,
                 struct bow_transport_error *ret_error)
{
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;
    char target[256];

    int n = snprintf(target, sizeof(target), "grpc:unix:%s/" KUBELET_SOCKET, options->folder);
    if (n < 0 || (size_t)n >= sizeof(target)) {
        snprintf(ret_error->text, sizeof(ret_error->text), "%s is too long a path",
                 options->folder);
        return -ENAMETOOLONG;
    }
    *kubelet = (struct kubelet){.options = *options};
    bow_timer_init(&kubelet->timer, options->loop, on_timer, kubelet);
    client.context = options->context;
    client.loop = options->loop;
    client.target = target;
    client.backoff_max_ns = SECOND_NS;  /* of a kubelet that is back one wants to know */
    client.idle_timeout_ns = SECOND_NS; /* registered: there is nothing more to say */
    client.error = ret_error;
    return bow_client_new(&client, &kubelet->client);
}

void kubelet_register(struct kubelet *kubelet)
{
    if (kubelet->call == 0) {
        bow_timer_start(&kubelet->timer, 0);
        return;
    }
    kubelet->again = true;
    bow_client_cancel(kubelet->client, kubelet->call);
}

void kubelet_close(struct kubelet *kubelet)
{
    kubelet->closed = true;
    bow_timer_stop(&kubelet->timer);
    bow_client_free(kubelet->client);
}
