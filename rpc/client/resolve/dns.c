/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Names looked up in the DNS, by c-ares: A and AAAA together, in the order of RFC 6724, or SRV and
 * then these of its targets. /etc/hosts and search domains count, as everywhere on the host.
 *
 *     begun ──► looking ──answered──► told ──TTL, or a hint──► looking
 *                  └─────failed─────► told ──pause, or a hint──► looking
 *
 * What is known holds for its TTL, within bounds and a tenth longer at most, so that many clients
 * do not ask together; after a failure the pauses grow.
 */

#include "rpc/client/resolve/dns.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/client/resolve/dns_channel.h"
#include "rpc/client/resolve/dns_name.h"
#include "rpc/client/resolve/dns_srv.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

/* Pauses after failures. */
#define FIRST_PAUSE_NS (1 * SECOND)
#define LAST_PAUSE_NS (30 * SECOND)

struct found {
    char text[BOW__ADDRESS_TEXT_BYTES];
    uint32_t weight;
};

/* A look-up of addresses that is under way. */
struct query {
    struct bow__link link;
    struct dns *dns;
    uint32_t weight;
    uint16_t port;
};

struct dns {
    struct bow_resolver_watch *watch;
    struct bow_context *context;
    const struct bow_system *system;
    struct bow__dns_channel channel;
    struct bow_timer timer; /* the next look-up, or when this one has to be over */
    struct bow__dns_name name;
    const char *dns_servers; /* of the client's options */
    uint64_t min_ttl_ns;
    bool is_looking;
    bool is_stopping;
    unsigned n_pending; /* questions; while more are asked, one more */
    struct bow__link queries;
    struct found *found; /* by this look-up */
    size_t n_found;
    size_t n_room;
    uint64_t ttl_ns; /* the least of what was found */
    uint64_t pause_ns;
    struct bow__text error; /* the first that was met */
};

/* What was found */

static void note_error(struct dns *dns, const char *what, const char *of, const char *why)
{
    if (dns->error.len > 0) {
        return;
    }
    bow__text_printf(&dns->error, "%s of ", what);
    bow__text_escape(&dns->error, (struct bow_slice){(const uint8_t *)of, strlen(of)}, 128);
    bow__text_printf(&dns->error, ": %s", why);
}

/* c-ares asks the next server after a SERVFAIL, and with the last of them forgets that there was
 * one. */
static const char *describe(int status)
{
    return status == ARES_ECONNREFUSED ? "no DNS server answers: each is out of reach, fails "
                                         "(SERVFAIL) or refuses to"
                                       : ares_strerror(status);
}

static void note_ttl(struct dns *dns, int ttl)
{
    dns->ttl_ns = bow__time_min(dns->ttl_ns, ttl > 0 ? (uint64_t)ttl * SECOND : 0);
}

static bool grow(struct dns *dns)
{
    size_t n_room = dns->n_room > 0 ? dns->n_room * 2 : 16;
    struct found *found = dns->found == NULL
                              ? bow__alloc(dns->context, n_room * sizeof(*found))
                              : bow__resize(dns->context, dns->found, dns->n_room * sizeof(*found),
                                            n_room * sizeof(*found));

    if (found == NULL) {
        note_error(dns, "no memory for the addresses", dns->name.host, "it will be tried again");
        return false;
    }
    dns->found = found;
    dns->n_room = n_room;
    return true;
}

static void add(struct dns *dns, const struct ares_addrinfo_node *node, const struct query *query)
{
    struct bow_sockaddr address;

    if (node->ai_addrlen > sizeof(address.storage) || (dns->n_found == dns->n_room && !grow(dns))) {
        return;
    }
    memset(&address, 0, sizeof(address));
    memcpy(&address.storage, node->ai_addr, node->ai_addrlen);
    address.len = node->ai_addrlen;
    if (query != NULL) {
        bow__sockaddr_set_port(&address, query->port);
    }
    struct found *found = &dns->found[dns->n_found++];
    bow__address_format(&address, found->text);
    found->weight = query != NULL ? query->weight : 1;
    note_ttl(dns, node->ai_ttl);
}

/* Telling */

static void tell_found(struct dns *dns)
{
    struct bow_resolver_update update = BOW_RESOLVER_UPDATE_INIT;
    struct bow_resolver_address *addresses =
        bow__alloc_array(dns->context, dns->n_found, sizeof(*addresses));

    if (addresses == NULL) {
        update.error = "there was no memory for its addresses";
        bow_resolver_update(dns->watch, &update);
        return;
    }
    for (size_t i = 0; i < dns->n_found; i++) {
        addresses[i] = (struct bow_resolver_address){.address = dns->found[i].text,
                                                     .weight = dns->found[i].weight};
    }
    update.addresses = addresses;
    update.n_addresses = dns->n_found;
    bow_resolver_update(dns->watch, &update);
    bow__free(dns->context, addresses, dns->n_found * sizeof(*addresses));
}

static void tell_error(struct dns *dns)
{
    struct bow_resolver_update update = BOW_RESOLVER_UPDATE_INIT;

    update.error = dns->error.len > 0 ? dns->error.bytes : "it has no addresses";
    bow_resolver_update(dns->watch, &update);
}

/* Up to a tenth more. */
static uint64_t jittered(const struct dns *dns, uint64_t ns)
{
    uint32_t random = 0;

    if (dns->system->random(dns->system->user, &random, sizeof(random)) < 0) {
        return ns;
    }
    return bow__time_add(ns, ns / 10240 * (random % 1024));
}

static void schedule(struct dns *dns, bool has_failed)
{
    uint64_t next = dns->ttl_ns > dns->min_ttl_ns ? dns->ttl_ns : dns->min_ttl_ns;

    if (has_failed) {
        dns->pause_ns =
            dns->pause_ns == 0 ? FIRST_PAUSE_NS : bow__time_min(dns->pause_ns * 2, LAST_PAUSE_NS);
        next = dns->pause_ns;
    } else {
        dns->pause_ns = 0;
        next = bow__time_min(next, BOW_LIMIT_DNS_TTL_MAX_NS);
    }
    bow_timer_start(&dns->timer, jittered(dns, next));
}

static void finish(struct dns *dns)
{
    bool has_failed = dns->n_found == 0;

    dns->is_looking = false;
    if (has_failed) {
        tell_error(dns);
    } else {
        tell_found(dns);
    }
    schedule(dns, has_failed);
}

static void answered(struct dns *dns)
{
    dns->n_pending--;
    if (dns->n_pending == 0 && !dns->is_stopping) {
        finish(dns);
    }
}

/* Asking */

static void take_addresses(struct dns *dns, int status, const char *host,
                           struct ares_addrinfo *answer, const struct query *query)
{
    if (status != ARES_SUCCESS) {
        note_error(dns, "the addresses", host, describe(status));
        return;
    }
    for (const struct ares_addrinfo_node *at = answer->nodes; at != NULL; at = at->ai_next) {
        add(dns, at, query);
    }
    for (const struct ares_addrinfo_cname *at = answer->cnames; at != NULL; at = at->next) {
        note_ttl(dns, at->ttl);
    }
}

static void on_addresses(void *user, int status, int n_timeouts, struct ares_addrinfo *answer)
{
    struct dns *dns = user;

    (void)n_timeouts;
    if (!dns->is_stopping) {
        take_addresses(dns, status, dns->name.host, answer, NULL);
    }
    if (answer != NULL) {
        ares_freeaddrinfo(answer);
    }
    answered(dns);
}

static void on_target(void *user, int status, int n_timeouts, struct ares_addrinfo *answer)
{
    struct query *query = user;
    struct dns *dns = query->dns;

    (void)n_timeouts;
    if (!dns->is_stopping) {
        take_addresses(dns, status, "a target of SRV", answer, query);
    }
    if (answer != NULL) {
        ares_freeaddrinfo(answer);
    }
    bow__list_remove(&query->link);
    bow__free(dns->context, query, sizeof(*query));
    answered(dns);
}

static const struct ares_addrinfo_hints hints = {
    .ai_family = AF_UNSPEC,
    .ai_socktype = SOCK_STREAM,
    .ai_flags = ARES_AI_NUMERICSERV,
};

static void ask_target(struct dns *dns, const struct ares_srv_reply *record)
{
    struct query *query = bow__alloc_zero(dns->context, sizeof(*query));

    if (query == NULL) {
        note_error(dns, "no memory to ask for the addresses", record->host, "it is left out");
        return;
    }
    query->dns = dns;
    query->weight = record->weight > 0 ? record->weight : 1;
    query->port = record->port;
    bow__list_push_back(&dns->queries, &query->link);
    dns->n_pending++;
    ares_getaddrinfo(dns->channel.ares, record->host, NULL, &hints, on_target, query);
}

static void take_srv(struct dns *dns, int status, const unsigned char *bytes, int len)
{
    const struct ares_srv_reply *best[BOW_LIMIT_DNS_SRV_TARGETS];
    struct ares_srv_reply *records = NULL;
    uint32_t ttl = 0;

    if (status == ARES_SUCCESS) {
        status = bow__dns_srv_parse(bytes, len, &records, &ttl);
    }
    if (status != ARES_SUCCESS) {
        note_error(dns, "the SRV records", dns->name.host, describe(status));
        return;
    }
    note_ttl(dns, ttl < INT32_MAX ? (int)ttl : INT32_MAX);
    uint32_t n = bow__dns_srv_best(records, best, BOW_LIMIT_DNS_SRV_TARGETS);
    for (uint32_t i = 0; i < n; i++) {
        ask_target(dns, best[i]);
    }
    ares_free_data(records);
}

static void on_srv(void *user, int status, int n_timeouts, unsigned char *bytes, int len)
{
    struct dns *dns = user;

    (void)n_timeouts;
    if (!dns->is_stopping) {
        take_srv(dns, status, bytes, len);
    }
    answered(dns);
}

static void look(struct dns *dns)
{
    dns->is_looking = true;
    dns->n_found = 0;
    dns->ttl_ns = BOW_NEVER;
    bow__text_clear(&dns->error);
    bow_timer_start(&dns->timer, BOW_LIMIT_DNS_LOOKUP_NS);
    dns->n_pending = 2; /* one of them until all is asked, for answers may be there at once */
    if (dns->name.asks_srv) {
        ares_query(dns->channel.ares, dns->name.host, 1 /* IN */, 33 /* SRV */, on_srv, dns);
    } else {
        ares_getaddrinfo(dns->channel.ares, dns->name.host, dns->name.port, &hints, on_addresses,
                         dns);
    }
    bow__dns_channel_arm(&dns->channel);
    answered(dns);
}

/* For each look-up that finds none: whom it asks may be changed by then. */
static bool open_channel(struct dns *dns)
{
    const char *servers = dns->name.servers[0] != '\0' ? dns->name.servers : dns->dns_servers;

    if (dns->channel.ares != NULL) {
        return true;
    }
    int status = bow__dns_channel_init(&dns->channel, dns->timer.loop, servers);
    if (status != ARES_SUCCESS) {
        bow__text_clear(&dns->error);
        bow__text_printf(&dns->error, "c-ares cannot ask %s: %s",
                         servers != NULL ? servers : "the system's DNS servers",
                         ares_strerror(status));
    }
    return status == ARES_SUCCESS;
}

/* It has taken too long: what is there counts. A look-up that is cancelled would go on with the
 * next thing to ask, so the channel goes. */
static void give_up(struct dns *dns)
{
    note_error(dns, "the addresses", dns->name.host,
               "no answer within 10 s (BOW_LIMIT_DNS_LOOKUP_NS)");
    bow__dns_channel_fini(&dns->channel);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct dns *dns = user;

    (void)timer;
    if (dns->is_looking) {
        give_up(dns);
    } else if (open_channel(dns)) {
        look(dns);
    } else {
        tell_error(dns);
        schedule(dns, true);
    }
}

/* The table */

static int start(const struct bow_resolver *resolver, struct bow_loop *loop, const char *name,
                 struct bow_resolver_watch *watch, void **ret_state)
{
    const struct bow__scheme_options *options = resolver->user;
    struct bow_context *context = bow_loop_context(loop);
    struct bow__text why;

    struct dns *dns = bow__alloc_zero(context, sizeof(*dns));
    if (dns == NULL) {
        return -ENOMEM;
    }
    dns->watch = watch;
    dns->context = context;
    dns->system = bow__context_system(context);
    dns->dns_servers = options->dns_servers;
    dns->min_ttl_ns =
        options->dns_min_ttl_ns != 0 ? options->dns_min_ttl_ns : BOW_LIMIT_DNS_TTL_MIN_NS;
    bow__list_init(&dns->queries);
    bow__text_clear(&dns->error);
    bow_timer_init(&dns->timer, loop, on_timer, dns);
    bow__text_clear(&why);
    int rc = bow__dns_name_parse(name, &dns->name, &why);
    if (rc < 0) {
        bow__free(context, dns, sizeof(*dns));
        return rc;
    }
    bow_timer_start(&dns->timer, 0);
    *ret_state = dns;
    return 0;
}

static void refresh(void *state)
{
    struct dns *dns = state;

    if (!dns->is_looking) {
        bow_timer_start(&dns->timer, 0);
    }
}

static void stop(void *state)
{
    struct dns *dns = state;

    dns->is_stopping = true;
    bow_timer_stop(&dns->timer);
    bow__dns_channel_fini(&dns->channel);
    bow__free(dns->context, dns->found, dns->n_room * sizeof(*dns->found));
    bow__free(dns->context, dns, sizeof(*dns));
}

static int check(const char *name, struct bow__text *why)
{
    struct bow__dns_name parsed;

    return bow__dns_name_parse(name, &parsed, why);
}

const struct bow__scheme bow__scheme_dns = {
    .table =
        {
            .size = sizeof(struct bow_resolver),
            .scheme = "dns",
            .start = start,
            .refresh = refresh,
            .stop = stop,
        },
    .check = check,
    .resolves = bow__dns_name_resolves,
    .names_host = true,
};
