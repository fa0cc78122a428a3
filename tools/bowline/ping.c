/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `bowline ping`: round trips of calls. It asks for the server's health; any answer is one, also
 * that there is no such method, for it comes from the server.
 */
#include "commands.h"
#include "grpc/health/v1/health.bow.h"
#include "headers.h"
#include "peer.h"
#include "say.h"

#include <string.h>
#include <time.h>

#define DEFAULT_COUNT 4
#define DEFAULT_INTERVAL_NS UINT64_C(1000000000)
#define DEFAULT_DEADLINE_NS (UINT64_C(5) * 1000000000u)

struct pinging {
    const struct options *options;
    struct peer peer;
    struct headers headers;
    uint64_t n_sent, n_answered;
    uint64_t first_ns; /* with connecting; 0: not yet */
    uint64_t least_ns, most_ns, sum_ns;
};

static bool is_answer(const struct bow_status *status)
{
    return status->code == BOW_OK || status->code == BOW_UNIMPLEMENTED ||
           status->code == BOW_NOT_FOUND || status->code == BOW_UNAUTHENTICATED ||
           status->code == BOW_PERMISSION_DENIED;
}

static void note(struct pinging *it, uint64_t ns)
{
    if (it->n_answered++ == 0) {
        it->first_ns = ns;
        return;
    }
    it->least_ns = it->least_ns == 0 || ns < it->least_ns ? ns : it->least_ns;
    it->most_ns = ns > it->most_ns ? ns : it->most_ns;
    it->sum_ns += ns;
}

static void show_peer(const struct pinging *it)
{
    const struct peer *peer = &it->peer;

    printf("%s: %s", peer->target,
           peer_is_grpc(peer) ? "gRPC over HTTP/2" : "Bowline's own protocol");
    if (peer->tls != NULL) {
        const struct tool_tls_seen *seen = tool_tls_seen(peer->tls);
        printf(", %s, %s%s", seen->version,
               seen->subject[0] != '\0' ? seen->subject : "no certificate",
               seen->is_verified ? "" : " (not verified)");
    }
    printf("\n");
}

static void show_json(const struct pinging *it)
{
    const struct tool_tls_seen *seen = it->peer.tls != NULL ? tool_tls_seen(it->peer.tls) : NULL;
    uint64_t n = it->n_answered > 1 ? it->n_answered - 1 : 1;

    printf("{\"protocol\":\"%s\",\"tls\":%s%s%s,\"subject\":",
           peer_is_grpc(&it->peer) ? "grpc" : "bowline", seen != NULL ? "\"" : "",
           seen != NULL ? seen->version : "null", seen != NULL ? "\"" : "");
    say_json_string(stdout, seen != NULL ? seen->subject : "",
                    seen != NULL ? strlen(seen->subject) : 0);
    printf(",\"sent\":%llu,\"answered\":%llu,\"first_seconds\":%.6f,\"min_seconds\":%.6f,"
           "\"avg_seconds\":%.6f,\"max_seconds\":%.6f}\n",
           (unsigned long long)it->n_sent, (unsigned long long)it->n_answered,
           (double)it->first_ns / 1e9, (double)it->least_ns / 1e9,
           (double)it->sum_ns / (double)n / 1e9, (double)it->most_ns / 1e9);
}

static void show_sum(const struct pinging *it)
{
    if (it->n_answered > 1) {
        printf("%llu of %llu answered; first with connecting %.3f ms, then min %.3f, avg %.3f, max "
               "%.3f ms\n",
               (unsigned long long)it->n_answered, (unsigned long long)it->n_sent,
               (double)it->first_ns / 1e6, (double)it->least_ns / 1e6,
               (double)it->sum_ns / (double)(it->n_answered - 1) / 1e6, (double)it->most_ns / 1e6);
    }
}

static int ping_once(struct pinging *it)
{
    const struct bow_method *method = &bow__health__health__service.methods[0];
    Bow__Health__HealthCheckRequest request = BOW__HEALTH__HEALTH_CHECK_REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    int rc = EXIT_OK;

    options.timeout_ns =
        it->options->deadline_ns != 0 ? it->options->deadline_ns : DEFAULT_DEADLINE_NS;
    options.metadata = &it->headers.metadata;
    uint64_t begun_ns = clock_ns();
    (void)bow_client_call(it->peer.client, method, &request.base, &options, &result);
    uint64_t ns = clock_ns() - begun_ns;
    it->n_sent++;
    if (!is_answer(&result.status)) {
        rc = peer_failed(&it->peer, &result.status);
    } else {
        note(it, ns);
        if (it->n_answered == 1 && !it->options->json) {
            show_peer(it);
        }
        if (!it->options->json) {
            printf("%llu: %.3f ms%s\n", (unsigned long long)it->n_sent, (double)ns / 1e6,
                   it->n_answered == 1 ? ", with connecting" : "");
            fflush(stdout);
        }
    }
    bow_result_fini(&result);
    return rc;
}

static int ping(struct pinging *it)
{
    uint64_t count = it->options->count != 0 ? it->options->count : DEFAULT_COUNT;
    uint64_t interval =
        it->options->interval_ns != 0 ? it->options->interval_ns : DEFAULT_INTERVAL_NS;
    const struct timespec pause = {.tv_sec = (time_t)(interval / 1000000000u),
                                   .tv_nsec = (long)(interval % 1000000000u)};
    int rc = headers_read(it->options, &it->headers);

    for (uint64_t i = 0; i < count && (rc == EXIT_OK || it->n_answered > 0); i++) {
        if (i > 0) {
            nanosleep(&pause, NULL);
        }
        rc = ping_once(it);
    }
    if (it->options->json) {
        show_json(it);
    } else {
        show_sum(it);
    }
    return rc;
}

int command_ping(const struct options *options)
{
    struct pinging it = {.options = options};

    int rc = peer_open(&it.peer, options, options->args[0]);
    if (rc == EXIT_OK) {
        rc = ping(&it);
    }
    peer_close(&it.peer);
    headers_free(&it.headers);
    return rc;
}
