#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Check that includes run one way: base <- transport <- rpc, base <- rpc/core <- sessions <- rpc.

    includes.py ROOT

The rules are the tables below; a folder that is in none of them is a finding. Includes tell what a
file may name; what it does name tells whether files call each other in a ring: one that defines a
function or table (bow_...) stands below one that uses it.
"""

import collections
import pathlib
import re
import sys

import tree

TRANSPORT = {f"transport/{name}" for name in
             ("system", "loop", "executor", "address", "channel", "handlers", "memory")}
CORE = {"rpc/core", "rpc/core/codec", "rpc/core/message", "rpc/core/compression", "rpc/core/call"}

# What a folder's files may include of the tree: first the public headers by their level (below),
# then the folders. The longest matching name counts. A folder may always include itself.
RULES = {
    "base": ({"base"}, set()),
    "transport/system": ({"base", "transport"}, {"base"}),
    "transport/loop": ({"base", "transport"}, {"base", "transport/system"}),
    "transport/executor": ({"base", "transport"}, {"base", "transport/loop"}),
    "transport/address": ({"base", "transport"}, {"base", "transport/loop", "transport/executor"}),
    "transport/channel": (
        {"base", "transport"},
        {"base", "transport/loop", "transport/executor", "transport/address"},
    ),
    "transport/handlers": ({"base", "transport"}, {"base", "transport/address", "transport/channel"}),
    "transport/memory": (
        {"base", "transport"},
        {"base", "transport/loop", "transport/address", "transport/channel"},
    ),
    "transport": ({"base", "transport"}, {"base"} | TRANSPORT),  # what lists its parts
    "rpc/core": ({"base", "rpc"}, {"base"}),
    "rpc/core/codec": ({"base", "rpc"}, {"base"}),
    "rpc/core/message": ({"base", "rpc"}, {"base", "rpc/core", "rpc/core/codec"}),
    "rpc/core/compression": ({"base", "rpc"}, {"base", "rpc/core", "rpc/core/message"}),
    "rpc/core/call": (
        {"base", "rpc"},
        {"base", "rpc/core", "rpc/core/codec", "rpc/core/message", "rpc/core/compression"},
    ),
    "rpc/messages": ({"base", "rpc"}, {"base", "rpc/core/codec"}),
    "rpc/well_known": ({"base", "rpc"}, {"base", "rpc/core/codec", "rpc/messages"}),
    "rpc/json": ({"base", "rpc"}, {"base", "rpc/core/codec", "rpc/messages", "rpc/well_known"}),
    "rpc/schema": ({"base", "rpc"}, {"base", "rpc/core/codec", "rpc/messages", "rpc/json"}),
    "rpc/native": ({"base", "rpc"}, {"base"} | CORE),
    "rpc/web": ({"base", "rpc"}, {"base", "rpc/json"} | CORE),
    "rpc/http2": ({"base", "rpc"}, {"base", "rpc/web"} | CORE),
    "rpc/http1": ({"base", "rpc"}, {"base", "rpc/web"} | CORE),
    "rpc/metrics": ({"base", "transport", "rpc"}, {"base"}),
    "rpc/inspect": ({"base", "transport", "rpc"}, {"base"} | TRANSPORT),
    "rpc/connection": (
        {"base", "transport", "rpc"},
        {"base", "rpc/metrics", "rpc/inspect", "rpc/native", "rpc/http1", "rpc/http2"} | TRANSPORT | CORE,
    ),
    "rpc/interceptors": ({"base", "transport", "rpc"}, {"base"} | TRANSPORT | CORE),
    "rpc/services": ({"base", "transport", "rpc"}, {"base"} | TRANSPORT | CORE),
    "rpc/client/retry": ({"base", "rpc"}, {"base", "rpc/json"}),
    "rpc/client/call": (
        {"base", "transport", "rpc"}, {"base", "rpc/metrics", "rpc/connection", "rpc/client/retry"} | TRANSPORT | CORE,
    ),
    "rpc/client/resolve": ({"base", "transport", "rpc"}, {"base"} | TRANSPORT),
    "rpc/client": (
        {"base", "transport", "rpc"},
        {"base", "rpc/metrics", "rpc/connection", "rpc/inspect", "rpc/client/call", "rpc/client/resolve", "rpc/client/retry"}
        | TRANSPORT | CORE,
    ),
    "rpc/server/dispatch": (
        {"base", "transport", "rpc"},
        {"base", "rpc/metrics", "rpc/connection", "rpc/inspect", "rpc/interceptors", "rpc/services", "rpc/web"}
        | TRANSPORT | CORE,
    ),
    "rpc/server/operations": (
        {"base", "transport", "rpc"},
        {"base", "rpc/http1", "rpc/inspect", "rpc/services"} | TRANSPORT,
    ),
    "rpc/server": (
        {"base", "transport", "rpc"},
        {"base", "rpc/metrics", "rpc/connection", "rpc/inspect", "rpc/interceptors", "rpc/services", "rpc/web",
         "rpc/server/dispatch", "rpc/server/operations"}
        | TRANSPORT | CORE,
    ),
    "tls": ({"base", "transport", "tls"}, {"base"} | TRANSPORT),
    "otel": ({"base", "transport", "rpc", "otel"}, {"base", "transport/address", "rpc/core/codec", "rpc/metrics"}),
    "etcd": ({"base", "transport", "rpc", "etcd"}, {"base", "transport/address"}),
    "testing": ({"base", "transport", "rpc", "testing"}, {"base"} | TRANSPORT),
    "codegen": ({"base", "rpc"}, {"base"}),
    "examples": ({"base", "transport", "rpc", "tls", "otel", "etcd", "testing"}, set()),
    "bench": ({"base", "transport", "rpc", "tls"}, set()),
    "tools": ({"base", "transport", "rpc", "tls"}, set()),
}

PROGRAMS = {"codegen", "examples", "bench", "tools"}

# The level of each public header. One that is not listed is a finding: placing it is a decision.
PUBLIC_LEVELS = {
    "base": {
        "arena", "buf", "context", "heap_node", "histogram", "limits", "slice", "system", "transport_error", "version",
        "visibility",
    },
    "transport": {
        "channel", "detect", "embedded", "executor", "frame_codec", "future", "group", "handler",
        "idle", "loop", "loop_stats", "proxy_protocol", "security", "submit", "task", "timer", "trace",
    },
    "rpc": {"access_log", "bearer", "call", "call_set", "call_stream", "client", "compression",
            "generic", "health", "inspect", "interceptor", "json", "message", "message_field", "message_print",
            "metadata", "metadata_interceptor", "metrics", "metrics_text", "payload", "resolver", "result", "retry", "schema",
            "server", "service", "span", "status", "stream", "tracer", "well_known"},
    "tls": {"tls"},
    "otel": {"otel"},
    "etcd": {"etcd"},
    "testing": {"testing"},
}
# What a public header of a level may include of the others.
PUBLIC_RULES = {
    "base": {"base"},
    "transport": {"base", "transport"},
    "rpc": {"base", "rpc"},  # for rpc/core reads them
    "tls": {"base", "transport", "tls"},
    "otel": {"base", "transport", "rpc", "otel"},
    "etcd": {"base", "transport", "rpc", "etcd"},
    "testing": {"base", "transport", "rpc", "testing"},
}

# Headers of other libraries, and of the system where it does I/O or threads: the folders that may
# include them, and those inside them that may not. rpc/core has locks, for replies come from any
# thread, but no I/O. The longest name that a file lies in decides.
ALL_ABOVE = {"examples", "bench", "tests"}
SESSIONS = {"rpc/native", "rpc/web", "rpc/http2", "rpc/http1"}
OUTSIDE = (
    (r"protobuf-c/.*", {"include", "rpc", "otel", "etcd", "codegen"} | ALL_ABOVE, set()),
    (r"nghttp2/.*", {"rpc/http2"} | ALL_ABOVE, set()),
    (r"openssl/.*", {"tls"} | ALL_ABOVE, set()),
    (r"ares\.h", {"rpc/client/resolve"} | ALL_ABOVE, set()),
    (r"(zstd|zlib)\.h", {"rpc/core"} | ALL_ABOVE, set()),
    (r"(pthread|threads)\.h",
     {"include", "transport", "rpc", "tls", "otel", "etcd", "testing", "codegen", "tools"} | ALL_ABOVE, SESSIONS),
    (r"(sys/(epoll|eventfd|timerfd|signalfd|socket|un|wait)|netinet/.*|arpa/.*|netdb|poll"
     r"|signal|unistd|fcntl)\.h",
     {"base/process.c", "include", "transport", "rpc", "tls", "testing", "codegen", "tools"} | ALL_ABOVE,
     {"rpc/core"} | SESSIONS),
)

# The order of the files of a folder, lowest first; those of one line may use each other in one
# direction. A file that is not listed is a finding, as is one that uses a higher one.
ORDER = {
    "rpc/core/codec": (
        "message_info raw value wire utf8 field_path",
        "map_entry message_init",
        "encode",
        "decoder",
        "decode_array decode_reason",
        "decode_required",
        "decode_message",
        "decode_group",
        "decode_unknown",
        "decode",
    ),
    "rpc/json": (
        "decimal_powers json_bytes json_names json_path json_types map_keys",
        "decimal decimal_read decimal_write",
        "json_output time_text",
        "json_reader json_writer message_print",
        "json_read_value json_write_known",
        "json_read_known",
        "json_read json_write",
    ),
    "rpc/schema": (
        "features layout proto_text ranges schema.pb-c",
        "schema",
        "declare default_value enum_type schema_files schema_print service_type",
        "message_type",
        "schema_build",
    ),
    "rpc/core/compression": ("coder", "compress_zlib compress_zstd", "encodings", "compression"),
    "rpc/core/call": (
        "child_calls generic receive",
        "call_gone call_metadata call_stream",
        "call",
        "call_stream_output",
        "call_stream_events",
        "call_stream_send",
        "call_stream_answer",
        "call_answer",
        "call_invoke",
    ),
    "rpc/messages": (
        "member reason storage",
        "field map_key message_encode message_life",
        "field_set message_clone message_equal",
        "field_add message_decode",
        "field_map",
    ),
    "rpc/metrics": ("bounds text_writer times", "method_counts", "metrics_text"),
    "rpc/services": ("descriptor health_states", "health reflection_index", "reflection"),
    "rpc/server/dispatch": (
        "backlog quota",
        "admission",
        "worker",
        "server_call",
        "dispatch_inspect dispatch_stream executor_dispatch intercept_server",
        "dispatch_call",
        "dispatch_enter",
        "dispatch",
        "server_conn",
    ),
    "rpc/server/operations": (
        "page answer methods",
        "routes",
        "operations_conn",
        "operations",
    ),
    "rpc/server": (
        "signals hand_over_frame",
        "hand_over take_over server_state",
        "server_fork server_metrics",
        "server_dump",
        "server_operations",
        "server_services server_listen server_reload server_own server_web",
        "server_stop",
        "server_hand_over",
        "server_start",
        "server_run server",
    ),
    "transport/loop": (
        "condition task_chain inbox",
        "loop_core",
        "loop_clock loop_stats watchdog loop_repair",
        "loop_fork",
        "loop_poll",
        "loop_watch timer loop_tasks",
        "loop_shutdown",
        "loop_run",
        "loop_post",
        "scheduled_task readiness",
        "loop loop_internal",
        "group",
    ),
    "transport/executor": (
        "executor_core",
        "executor",
        "strand event_executor",
        "future",
        "submit loop_terminated",
    ),
    "tls": (
        "bio files validity openssl_error context_lock",
        "connection",
        "sessions tickets",
        "setup",
        "context",
        "name",
        "input output",
        "handler",
        "security",
    ),
    "otel": (
        "attributes sender span_queue",
        "resource span_message",
        "exporter",
    ),
    "etcd": (
        "core endpoint",
        "token",
        "op",
        "op_watch lease",
        "registration lock service",
        "watch",
        "resolver",
        "etcd",
    ),
    "transport/channel": (
        "unread unix_file handed",
        "socket socket_activation",
        "transport",
        "channel_core",
        "write_queue",
        "channel_close",
        "pipeline",
        "channel_read",
        "channel_write",
        "channel_ops",
        "channel",
        "filter bound connector listen",
        "acceptor_open",
        "acceptor",
    ),
    "transport/memory": ("ring inproc_fault", "inproc_pair", "inproc", "embedded"),
    "rpc/client/call": (
        "call_ids client_methods result",
        "client_call",
        "client_metadata stream",
        "stream_send",
        "call_attempt",
        "call_hedge",
        "call_retry",
        "stream_receive",
    ),
    "rpc/client/retry": (
        "budget policy service_config.pb-c",
        "policy_table",
        "service_config",
        "retries",
    ),
    "rpc/client/resolve": (
        "scheme",
        "address_lines address_set dns_channel dns_name dns_srv",
        "dns dns_none file",
    ),
    "rpc/client": (
        "backoff target",
        "client_options",
        "health_watch resolver_watch",
        "client_conn",
        "conn_setup",
        "subchannel",
        "subchannel_list",
        "subchannel_set",
        "balancer_stage further",
        "balancer",
        "client_deadline intercept_client",
        "client",
        "client_metrics client_start",
        "call_set client_block client_dump stream_open",
        "stream_block",
    ),
    "rpc/native": (
        "frame header",
        "state",
        "output",
        "error",
        "flow",
        "stream",
        "heartbeat queue",
        "send calls",
        "message",
        "frames",
        "requests replies control",
        "receive",
        "session",
        "internal",
    ),
    "rpc/web": (
        "codes fields grpc_text page query reader retry_info",
        "web web_call",
        "content_type end_text origins",
        "message_json",
        "request answer",
    ),
    "rpc/http1": ("fields", "request", "parser response head", "output", "exchange", "session"),
    "rpc/inspect": ("out snapshot", "gather", "render"),
    "rpc/http2": (
        "state codes nghttp2",
        "error",
        "flow inspect heartbeat queue submit",
        "header_block",
        "stream",
        "web_answer",
        "control answer",
        "web_request",
        "calls send message",
        "headers",
        "nghttp2_send",
        "nghttp2_receive",
        "session",
        "internal",
    ),
}

# Files that call each other and are one concept all the same, by the name they share.
ONE_CONCEPT = (
)

# Those whose files are held to be without rings.
LIBRARY = ("base/", "transport/", "rpc/", "tls/", "otel/", "etcd/", "testing/")

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def owner_of(path, names):
    """The longest of `names` that `path` lies in, or None."""
    parts = path.split("/")
    for n_parts in range(len(parts), 0, -1):
        name = "/".join(parts[:n_parts])
        if name in names:
            return name
    return None


def level_of(header):
    name = header.removesuffix(".h").split("/")[0]
    return next((level for level, names in PUBLIC_LEVELS.items() if name in names), None)


def check_public(folder, levels, header):
    level = level_of(header)
    if level is None:
        return f"<bowline/{header}> has no level; add it to PUBLIC_LEVELS in tools/checks/includes.py"
    if level not in levels:
        return (f"{folder} must not know <bowline/{header}>, which is {level}'s; move what is needed "
                f"down, or pass it in from above")
    return None


def check_outside(where, header):
    for pattern, allowed, denied in OUTSIDE:
        if re.fullmatch(pattern, header) and owner_of(where, allowed | denied) not in allowed:
            return (f"{where} must not include <{header}>; only {', '.join(sorted(allowed))} may, "
                    f"so pass in what it is needed for")
    return None


def check_quoted(root, where, owner, header):
    """A header of the tree, by its path from the root; programs may also name one beside them."""
    if not (root / header).is_file():
        if owner in PROGRAMS:
            return None  # beside it, or generated into the build folder
        return f'"{header}" is no file; write includes with their path from the root'
    target = owner_of(str(pathlib.PurePosixPath(header).parent), set(RULES))
    if target == owner or target in RULES[owner][1]:
        return None
    allowed = ", ".join(sorted(RULES[owner][1] | {owner}))
    return f'{owner} must not include "{header}" (it may: {allowed}); turn the dependency around'


def check_include(root, path, kind, header):
    where = str(path.parent.relative_to(root))
    if kind == "<" and header.startswith("bowline/"):
        name = header.removeprefix("bowline/")
        if not (root / "include" / header).is_file():
            return f"<{header}> does not exist"
        if where.startswith("include"):
            level = level_of(path.name)
            return check_public(f"<bowline/{path.name}>", PUBLIC_RULES.get(level, set()), name)
        owner = owner_of(where, set(RULES))
        return check_public(owner, RULES[owner][0], name) if owner else None
    if kind == "<":
        return check_outside(str(path.relative_to(root)), header)
    if where.startswith("include"):
        return f'a public header must not include "{header}"; only <bowline/...>, libc, protobuf-c'
    if where.split("/")[0] == "tests":
        return None  # tests look inside everything
    return check_quoted(root, where, owner_of(where, set(RULES)), header)


NO_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
FUNCTION = re.compile(r"^(?!#)[A-Za-z_][^;{}=#\n]*?\b(bow_\w+)\([^;{}]*\)[^;{}]*\n?\{", re.MULTILINE)
TABLE = re.compile(r"^const struct \w+ (bow_\w+)\s*=", re.MULTILINE)
NAME = re.compile(r"\bbow_\w+")


def uses_between(root, paths):
    """{file: {file it uses: a name it uses}}; a source and its header count as one, without suffix."""
    texts = collections.defaultdict(str)
    for path in paths:
        name = str(path.relative_to(root).with_suffix(""))
        if name.startswith(LIBRARY):
            texts[name] += NO_CODE.sub("", path.read_text(encoding="utf-8")) + "\n"
    definers = {name: file for file, text in texts.items()
                for pattern in (FUNCTION, TABLE) for name in pattern.findall(text)}
    uses = {file: {} for file in texts}
    for file, text in texts.items():
        for name in sorted(set(NAME.findall(text)) & set(definers)):
            if definers[name] != file:
                uses[file].setdefault(definers[name], name)
    return uses


def reach(uses, start):
    """The files that `start` uses, directly or by way of others."""
    seen, left = set(), [start]
    while left:
        for file in uses[left.pop()]:
            if file not in seen:
                seen.add(file)
                left.append(file)
    return seen


def rings_of(uses):
    """Sets of files that all use each other, directly or by way of others."""
    reached = {file: reach(uses, file) for file in uses}
    rings = []
    for file in sorted(uses):
        if file in reached[file] and not any(file in ring for ring in rings):
            rings.append({other for other in reached[file] if file in reached[other]})
    return rings


def suffixed(root, file):
    return root / (file + (".c" if (root / (file + ".c")).is_file() else ".h"))


def check_rings(root, uses, findings):
    for ring in rings_of(uses):
        if ring not in ONE_CONCEPT:
            first = min(ring)
            links = "; ".join(f"{file} uses {name}" for file in sorted(ring)
                              for other, name in sorted(uses[file].items()) if other in ring)
            findings.add(suffixed(root, first), 1, f"a ring of {len(ring)} files ({links}); let the lower "
                         f"one tell the higher one by its result or by a table it was given")


def check_order(root, uses, findings):
    for folder, levels in ORDER.items():
        place = {f"{folder}/{name}": n for n, level in enumerate(levels) for name in level.split()}
        for file in sorted(uses):
            if str(pathlib.PurePosixPath(file).parent) != folder:
                continue
            if file not in place:
                findings.add(suffixed(root, file), 1, "has no place in ORDER of tools/checks/includes.py")
                continue
            for other, name in sorted(uses[file].items()):
                if place.get(other, 0) > place[file]:
                    findings.add(suffixed(root, file), 1, f"uses {name} of {other}, which stands above it")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    findings = tree.Findings(root)
    n_includes = 0
    paths = tree.c_files(root)

    for path in paths:
        where = str(path.parent.relative_to(root))
        if owner_of(where, set(RULES) | {"include", "tests"}) is None:
            findings.add(path, 1, "this folder has no rule; add it to RULES in tools/checks/includes.py")
            continue
        for number, text in enumerate(tree.lines(path), 1):
            match = INCLUDE.match(text)
            if not match:
                continue
            n_includes += 1
            what = check_include(root, path, *match.groups())
            if what:
                findings.add(path, number, what)
    uses = uses_between(root, paths)
    check_rings(root, uses, findings)
    check_order(root, uses, findings)
    return findings.end(f"{n_includes} includes in {len(paths)} files")


if __name__ == "__main__":
    sys.exit(main())
