/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the operations listener answers, by path. All of it is read, nothing is changed by a
 * request. A Host that is a name is refused, for a page elsewhere may have its name point here (DNS
 * rebinding), and its browser then reads for it what this listener says.
 */
#include "rpc/server/operations/routes.h"
#include "rpc/inspect/render.h"
#include "rpc/server/operations/methods.h"
#include "rpc/server/operations/page.h"

#include <arpa/inet.h>
#include <bowline/limits.h>
#include <bowline/metrics_text.h>
#include <string.h>

struct bow__operations_route {
    const char *path;
    /** Made at once; or NULL. */
    void (*make)(const struct bow__operations_host *host,
                 const struct bow__operations_request *request,
                 struct bow__operations_answer *answer);
    /** Of what was gathered; or NULL. */
    void (*show)(const struct bow__operations_host *host,
                 const struct bow__operations_request *request, const struct bow__gather *gather,
                 struct bow__operations_answer *answer);
    uint32_t parts;
};

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static bool is_text(struct bow_slice bytes, const char *text)
{
    struct bow_slice other = slice_of(text);

    return bytes.len == other.len && (bytes.len == 0 || memcmp(bytes.data, text, bytes.len) == 0);
}

/* Hosts */

/* Without its port, and the brackets of an address of IPv6. */
static struct bow_slice bare_host(struct bow_slice host)
{
    bool has_brackets = host.len > 0 && host.data[0] == '[';
    size_t len = 0;

    while (len < host.len && host.data[len] != (has_brackets ? ']' : ':')) {
        len++;
    }
    if (!has_brackets) {
        return (struct bow_slice){host.data, len};
    }
    bool ends_there = len + 1 == host.len || (len + 1 < host.len && host.data[len + 1] == ':');
    return ends_there ? (struct bow_slice){host.data + 1, len - 1} : host;
}

static bool is_number(struct bow_slice host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (host.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, host.data, host.len);
    text[host.len] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_listed(struct bow_slice host, const char *hosts)
{
    struct bow_slice list = slice_of(hosts != NULL ? hosts : "");
    struct bow_slice name;
    char text[256];

    while (bow__http1_list_next(&list, &name)) {
        if (name.len < sizeof(text)) {
            memcpy(text, name.data, name.len);
            text[name.len] = '\0';
            if (bow__http1_equals(host, text)) {
                return true;
            }
        }
    }
    return false;
}

/* A number names this host and no other; a name that a stranger chose is none of these. */
static bool is_our_host(const struct bow__operations_host *host, struct bow_slice given)
{
    struct bow_slice bare = bare_host(given);

    return host->any_host || bare.len == 0 || bow__http1_equals(bare, "localhost") ||
           is_number(bare) || is_listed(bare, host->hosts);
}

/* Probes */

struct states {
    struct bow__out *out;
    bool json;
    bool all_serve;
    uint32_t n;
};

static const char *state_text(int state)
{
    static const char *const texts[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};

    return (unsigned)state < sizeof(texts) / sizeof(texts[0]) ? texts[state] : "UNKNOWN";
}

static bool put_state(const char *name, int state, void *user)
{
    struct states *states = user;

    states->n++;
    states->all_serve = states->all_serve && state == BOW_HEALTH_SERVING;
    if (states->json) {
        bow__out_open(states->out, NULL, '{');
        bow__out_string(states->out, "service", name);
        bow__out_string(states->out, "state", state_text(state));
        bow__out_close(states->out, '}');
    } else {
        bow__out_escaped(states->out, name[0] != '\0' ? name : "(server)");
        bow__out_printf(states->out, ": %s\n", state_text(state));
    }
    return true;
}

static void put_verdict(const struct bow__operations_host *host, bool json, bool is_good,
                        struct bow__operations_answer *answer)
{
    bool is_draining = host->is_draining(host->server);

    if (json) {
        bow__out_string(&answer->out, "status", is_good ? "ok" : "unavailable");
        bow__out_bool(&answer->out, "draining", is_draining);
        bow__out_close(&answer->out, '}');
    } else {
        bow__out_printf(&answer->out, "%s%s\n", is_good ? "ok" : "unavailable",
                        is_draining ? ": the server drains" : "");
    }
    answer->status = is_good ? 200 : 503;
}

/* A state of each service that is known, or of the one that was asked for. */
static struct states put_states(const struct bow__operations_host *host,
                                const struct bow__operations_request *request,
                                struct bow__operations_answer *answer)
{
    struct states states = {.out = &answer->out, .json = request->json, .all_serve = true};

    if (request->json) {
        answer->type = BOW__ANSWER_JSON;
        bow__out_open(&answer->out, NULL, '{');
        bow__out_open(&answer->out, "services", '[');
    }
    if (request->has_service) {
        put_state(request->service, bow__health_states_get(host->health, request->service),
                  &states);
    } else {
        bow__health_states_each(host->health, put_state, &states);
    }
    if (request->json) {
        bow__out_close(&answer->out, ']');
    }
    return states;
}

static void make_livez(const struct bow__operations_host *host,
                       const struct bow__operations_request *request,
                       struct bow__operations_answer *answer)
{
    if (request->json) {
        answer->type = BOW__ANSWER_JSON;
        bow__out_open(&answer->out, NULL, '{');
        put_verdict(host, true, true, answer);
    } else {
        bow__out_printf(&answer->out, "ok\n");
    }
}

/* All that is known serves. */
static void make_healthz(const struct bow__operations_host *host,
                         const struct bow__operations_request *request,
                         struct bow__operations_answer *answer)
{
    struct states states = put_states(host, request, answer);

    put_verdict(host, request->json, states.all_serve && !host->is_draining(host->server), answer);
}

/* The server as such does (or the service that was asked for): one service that does not is no
 * reason to take all of it out of use. */
static void make_readyz(const struct bow__operations_host *host,
                        const struct bow__operations_request *request,
                        struct bow__operations_answer *answer)
{
    struct states states = put_states(host, request, answer);
    int state = bow__health_states_get(host->health, request->service);
    bool has_health = states.n > 0;
    bool serves = state == BOW_HEALTH_SERVING || (!has_health && !request->has_service);

    put_verdict(host, request->json, serves && !host->is_draining(host->server), answer);
}

/* What was counted */

static void make_methods(const struct bow__operations_host *host,
                         const struct bow__operations_request *request,
                         struct bow__operations_answer *answer)
{
    if (!request->json) {
        bow__operations_text_methods(host->server, &answer->out);
        return;
    }
    answer->type = BOW__ANSWER_JSON;
    bow__out_open(&answer->out, NULL, '{');
    bow__operations_json_methods(host->server, &answer->out);
    bow__operations_json_counters(host->server, &answer->out);
    bow__out_close(&answer->out, '}');
}

static void make_metrics(const struct bow__operations_host *host,
                         const struct bow__operations_request *request,
                         struct bow__operations_answer *answer)
{
    enum bow_metrics_format format =
        request->openmetrics ? BOW_METRICS_OPENMETRICS : BOW_METRICS_PROMETHEUS;

    answer->type = bow_metrics_content_type(format);
    /* What fails is the answer's own error. */
    (void)!bow_server_metrics_text(host->server, format, bow__operations_answer_put, answer);
}

static void make_config(const struct bow__operations_host *host,
                        const struct bow__operations_request *request,
                        struct bow__operations_answer *answer)
{
    if (!request->json) {
        host->put_config(host->server, false, &answer->out);
        return;
    }
    answer->type = BOW__ANSWER_JSON;
    bow__out_open(&answer->out, NULL, '{');
    host->put_config(host->server, true, &answer->out);
    bow__out_close(&answer->out, '}');
}

/* What loops tell */

static void show_parts(const struct bow__operations_host *host,
                       const struct bow__operations_request *request,
                       const struct bow__gather *gather, struct bow__operations_answer *answer)
{
    (void)host;
    if (!request->json) {
        bow__render_text(gather, "server", request->route->parts, &answer->out);
        return;
    }
    answer->type = BOW__ANSWER_JSON;
    bow__out_open(&answer->out, NULL, '{');
    bow__render_json(gather, request->route->parts, &answer->out);
    bow__out_close(&answer->out, '}');
}

/* All that the page shows, so that it asks once for each picture. */
static void show_all(const struct bow__operations_host *host,
                     const struct bow__operations_request *request,
                     const struct bow__gather *gather, struct bow__operations_answer *answer)
{
    (void)request;
    answer->type = BOW__ANSWER_JSON;
    bow__out_open(&answer->out, NULL, '{');
    bow__out_bool(&answer->out, "draining", host->is_draining(host->server));
    bow__operations_json_methods(host->server, &answer->out);
    bow__operations_json_counters(host->server, &answer->out);
    bow__out_open(&answer->out, "config", '{');
    host->put_config(host->server, true, &answer->out);
    bow__out_close(&answer->out, '}');
    bow__render_json(gather, request->route->parts, &answer->out);
    bow__out_close(&answer->out, '}');
}

static void make_page(const struct bow__operations_host *host,
                      const struct bow__operations_request *request,
                      struct bow__operations_answer *answer)
{
    (void)host;
    (void)request;
    answer->type = "text/html; charset=utf-8";
    answer->policy = bow__operations_page_policy;
    bow__out_bytes(&answer->out, bow__operations_page, bow__operations_page_bytes);
}

static const struct bow__operations_route routes[] = {
    {.path = "/", .make = make_page},
    {.path = "/livez", .make = make_livez},
    {.path = "/readyz", .make = make_readyz},
    {.path = "/healthz", .make = make_healthz},
    {.path = "/metrics", .make = make_metrics},
    {.path = "/debug/methods", .make = make_methods},
    {.path = "/debug/config", .make = make_config},
    {.path = "/debug/calls", .show = show_parts, .parts = BOW_DUMP_CALLS},
    {.path = "/debug/connections", .show = show_parts, .parts = BOW_DUMP_CONNECTIONS},
    {.path = "/debug/loops", .show = show_parts, .parts = BOW_DUMP_LOOPS},
    {.path = "/debug/all",
     .show = show_all,
     .parts = BOW_DUMP_CALLS | BOW_DUMP_CONNECTIONS | BOW_DUMP_LOOPS},
};

static const struct bow__operations_route *find_route(struct bow_slice path)
{
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (is_text(path, routes[i].path)) {
            return &routes[i];
        }
    }
    return NULL;
}

/* Reading the request */

/* The value of a name in the query, as it stands: what is asked for here has no need of escapes. */
static bool find_query(struct bow_slice query, const char *name, struct bow_slice *ret_value)
{
    while (query.len > 0) {
        const uint8_t *end = memchr(query.data, '&', query.len);
        size_t len = end != NULL ? (size_t)(end - query.data) : query.len;
        const uint8_t *equals = memchr(query.data, '=', len);
        size_t n_name = equals != NULL ? (size_t)(equals - query.data) : len;
        if (is_text((struct bow_slice){query.data, n_name}, name)) {
            size_t n_before = n_name + (equals != NULL);
            *ret_value = (struct bow_slice){query.data + n_before, len - n_before};
            return true;
        }
        len += end != NULL;
        query.data += len;
        query.len -= len;
    }
    return false;
}

/* The first of its kinds that is known here; weights are no use between two forms of the same. */
static bool accepts(const struct bow__http1_request *head, const char *type)
{
    const struct bow__http1_field *field;
    size_t at = 0;

    while ((field = bow__http1_fields_next(&head->fields, "Accept", &at)) != NULL) {
        struct bow_slice list = field->value;
        struct bow_slice element;
        while (bow__http1_list_next(&list, &element)) {
            const uint8_t *end = memchr(element.data, ';', element.len);
            element.len = end != NULL ? (size_t)(end - element.data) : element.len;
            while (element.len > 0 && element.data[element.len - 1] == ' ') {
                element.len--;
            }
            if (bow__http1_equals(element, type)) {
                return true;
            }
        }
    }
    return false;
}

static void read_request(const struct bow__http1_request *head,
                         struct bow__operations_request *request)
{
    struct bow_slice value;

    request->json = find_query(head->query, "format", &value) ? is_text(value, "json")
                                                              : accepts(head, "application/json");
    request->openmetrics = accepts(head, "application/openmetrics-text");
    request->has_service = find_query(head->query, "service", &value);
    request->service[0] = '\0';
    /* A name that is longer is none that is known: it is cut, and so not taken for the server's. */
    if (request->has_service) {
        size_t room = sizeof(request->service) - 1;
        size_t len = value.len < room ? value.len : room;
        memcpy(request->service, value.data, len);
        request->service[len] = '\0';
    }
}

bool bow__operations_begin(const struct bow__operations_host *host,
                           const struct bow__http1_request *head,
                           struct bow__operations_request *ret_request,
                           struct bow__operations_answer *answer,
                           struct bow__snapshot_limits *ret_limits)
{
    if (!is_text(head->method, "GET") && !is_text(head->method, "HEAD")) {
        bow__operations_answer_say(answer, 405, "GET and HEAD are what is answered here");
        answer->allow = "GET, HEAD";
        return true;
    }
    if (!is_our_host(host, head->host)) {
        bow__operations_answer_say(answer, 421,
                                   "this Host is none of this listener's: call it by its number or "
                                   "localhost, or list the name in options.operations_hosts");
        return true;
    }
    read_request(head, ret_request);
    ret_request->route = find_route(head->path);
    if (ret_request->route == NULL) {
        bow__operations_answer_say(answer, 404,
                                   "not here: / /livez /readyz /healthz /metrics /debug/methods "
                                   "/debug/calls /debug/connections /debug/loops /debug/config");
        return true;
    }
    if (ret_request->route->make == NULL) {
        *ret_limits =
            (struct bow__snapshot_limits){BOW_LIMIT_DUMP_CALLS, BOW_LIMIT_DUMP_CONNECTIONS};
        return false;
    }
    ret_request->route->make(host, ret_request, answer);
    bow__operations_answer_end(answer);
    return true;
}

void bow__operations_finish(const struct bow__operations_host *host,
                            const struct bow__operations_request *request,
                            const struct bow__gather *gather, struct bow__operations_answer *answer)
{
    request->route->show(host, request, gather, answer);
    bow__operations_answer_end(answer);
}
