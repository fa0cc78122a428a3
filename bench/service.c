/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The measuring half of a bench server. Must not know the protocol. */

#include "service.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void service_parse(struct service *service, int argc, char **argv)
{
    if (argc != 2 && argc != 5) {
        fprintf(stderr, "usage: %s HOST:PORT [BYTES WARMUP CALLS]\n", argv[0]);
        exit(2);
    }
    *service = (struct service){.listen = argv[1], .text_bytes = BENCH_TEXT_BYTES};
    if (argc == 5) {
        service->text_bytes = (uint32_t)strtoul(argv[2], NULL, 10);
        service->n_warmup = strtoull(argv[3], NULL, 10);
        service->n_calls = strtoull(argv[4], NULL, 10);
    }
}

static bool passes(uint64_t mark, uint64_t before, uint64_t after)
{
    return before < mark && after >= mark;
}

void service_count(struct service *service, uint64_t n)
{
    uint64_t before = service->n_done;
    service->n_done += n;
    if (passes(service->n_warmup, before, service->n_done)) {
        service->begin = costs_now(&service->io);
    }
    if (passes(service->n_warmup + service->n_calls, before, service->n_done)) {
        service->end = costs_now(&service->io);
    }
}

void service_print(const struct service *service)
{
    printf("{\"receives\": %" PRIu64 ", \"sends\": %" PRIu64 ", \"minor_faults\": %" PRIu64
           ", \"system_calls\": %" PRIu64 "}\n",
           service->io.receives, service->io.sends,
           service->end.minor_faults - service->begin.minor_faults,
           service->end.system_calls - service->begin.system_calls);
}
