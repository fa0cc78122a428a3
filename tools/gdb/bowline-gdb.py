# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Loops, connections, calls and streams of a process that uses Bowline, for gdb: live or a core file.

    gdb -p PID -x bowline-gdb.py -batch -ex bowline
    gdb PROGRAM core -x bowline-gdb.py -batch -ex bowline
    (gdb) bowline [loops | connections | calls]

Nothing is called in the process and nothing is changed: all is read from its memory, by the types of the
library's debug information. Loops are found by the threads that run them: a frame of each has a pointer
to its loop. What clients and servers have there hangs on the hooks by which a loop tells them of its end.
"""

import sys

import gdb

NEVER = (1 << 64) - 1

# Stages by what a call's memory says; rpc/server/dispatch/dispatch_inspect.c and rpc/client/client_dump.c
# say the same from inside.
CLIENT_STAGES = {
    "BOW__CLIENT_CALL_POSTED": "on its way to the loop",
    "BOW__CLIENT_CALL_HELD": "held by an interceptor",
    "BOW__CLIENT_CALL_QUEUED": "waiting for a connection or a stream",
    "BOW__CLIENT_CALL_OPEN": "waiting for the server",
    "BOW__CLIENT_CALL_EXPIRING": "waiting for the server",
    "BOW__CLIENT_CALL_LINGERING": "waiting for the reader",
    "BOW__CLIENT_CALL_FAILING": "about to fail",
}


def type_of(name):
    try:
        return gdb.lookup_type("struct " + name)
    except gdb.error:
        raise gdb.GdbError(f"no type struct {name}: the library has no debug information (its package "
                           f"with -dbgsym, or a build with -g)") from None


def container(pointer, name, member):
    """The struct `name` whose `member` is at `pointer`."""
    outer = type_of(name)
    offset = next(field.bitpos // 8 for field in outer.fields() if field.name == member)
    return gdb.Value(int(pointer) - offset).cast(outer.pointer())


def members_of(head, name, link="link"):
    """What is in an intrusive list."""
    at = head["next"]
    while int(at) != int(head.address):
        yield container(at, name, link)
        at = at["next"]


def text(pointer, nothing="-"):
    if int(pointer) == 0:
        return nothing
    shown = pointer.string("ascii", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)


def seconds(ns):
    return f"{ns / 1e9:.3f} s"


def atomic(value):
    """The value of an atomic, which gdb may show as what it is made of."""
    return int(value)


# Where things are

def frames():
    """(thread, frame) of all threads, innermost first."""
    chosen = gdb.selected_thread()
    for thread in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num):
        thread.switch()
        frame = gdb.newest_frame()
        while frame is not None:
            yield thread, frame
            try:
                frame = frame.older()
            except gdb.error:
                frame = None
    if chosen is not None:
        chosen.switch()


def loops_in(frame):
    """Loops that the variables of a frame point to."""
    try:
        block = frame.block()
    except RuntimeError:
        return
    while block is not None and not block.is_global and not block.is_static:
        for symbol in block:
            if not (symbol.is_argument or symbol.is_variable):
                continue
            if str(symbol.type.strip_typedefs().unqualified()).replace("const ", "") != "struct bow_loop *":
                continue
            try:
                value = symbol.value(frame)
                if not value.is_optimized_out and int(value) != 0:
                    yield value
            except (gdb.error, gdb.MemoryError):
                continue
        if block.function is not None:
            return
        block = block.superblock


def is_owner(loop, thread):
    """Whether the thread is the one that the loop runs on: others may be about to post to it."""
    try:
        return int.from_bytes(thread.handle(), sys.byteorder) == atomic(loop["owner"])
    except (AttributeError, RuntimeError, gdb.error):
        return atomic(loop["owner"]) != 0


def find_loops():
    """[(loop, the thread that runs it)], by address"""
    found = {}
    for thread, frame in frames():
        for loop in loops_in(frame):
            try:
                if int(loop) not in found and is_owner(loop, thread):
                    found[int(loop)] = (loop, thread)
            except gdb.MemoryError:
                continue
    return [found[address] for address in sorted(found)]


def hooks_of(loop):
    """(hook, the file of its function)"""
    hook = loop["hooks"]
    while int(hook) != 0:
        found = gdb.find_pc_line(int(hook["fn"]))
        yield hook, found.symtab.filename if found.symtab is not None else ""
        hook = hook["next"]


def workers_of(loop):
    return [container(hook, "bow__worker", "hook") for hook, file in hooks_of(loop)
            if file.endswith("rpc/server/dispatch/worker.c")]


def balancers_of(loop):
    return [container(hook, "bow__balancer", "hook") for hook, file in hooks_of(loop)
            if file.endswith("rpc/client/balancer.c")]


# What is shown

def peer_of(conn):
    return text(conn["channel"]["peer"]) if int(conn["channel"]) != 0 else "-"


def protocol_of(conn):
    session = conn["session"]
    return text(session["ops"]["name"]) if int(session) != 0 else "no protocol yet"


def show_conn(conn, what):
    session = conn["session"]
    n_streams = int(session["n_streams"]) if int(session) != 0 else 0
    waiting = int(session["n_waiting"]) if int(session) != 0 else 0
    print(f"  connection {what} {peer_of(conn)} ({protocol_of(conn)}): {n_streams} streams, {waiting} bytes of "
          f"messages wait{', closing' if bool(conn['closing']) else ''}"
          f"{', not read from' if bool(conn['paused']) else ''}")


def show_call(kind, method, peer, stage, started_ns, deadline_ns, now_ns, rest=""):
    left = "no deadline" if deadline_ns == NEVER else f"{seconds(max(0, deadline_ns - now_ns))} left"
    print(f"  {kind} {method} {peer}: {stage}, for {seconds(max(0, now_ns - started_ns))}, {left}{rest}")


def server_stage(call):
    inner = call["call"]
    if bool(call["waits"]):
        return "waiting before the handler"
    if not bool(inner["invoked"]):
        return "held by an interceptor" if int(inner["intercepted"]) != 0 else "receiving the request"
    if int(inner["entry"]) != 0 and int(inner["entry"]["executor"]) != 0 and atomic(call["entered_at_ns"]) == 0:
        return "waiting for a thread"
    return "in the handler"


def show_server_call(call, now_ns):
    inner = call["call"]
    stream = inner["stream"]
    rest = ""
    if int(stream) != 0:
        rest = f", {atomic(stream['n_waiting'])} bytes wait"
    show_call("stream" if int(stream) != 0 else "call", text(inner["method"]["path"]), "with " + text(inner["peer"]),
              server_stage(call), int(call["started_ns"]), int(inner["deadline_ns"]), now_ns, rest)


def show_client_call(call, now_ns):
    stream = call["stream"]
    peer = "to " + peer_of(call["conn"]) if int(call["conn"]) != 0 else "without a connection"
    rest = f", {atomic(stream['n_waiting'])} bytes wait" if int(stream) != 0 else ""
    show_call("stream" if int(stream) != 0 else "call", text(call["method"]["path"]), peer,
              CLIENT_STAGES.get(str(call["state"]), str(call["state"])), int(call["started_ns"]),
              int(call["deadline_ns"]), now_ns, rest)


def show_worker(worker, parts, now_ns):
    for conn in members_of(worker["conns"], "bow__server_conn"):
        if "connections" in parts:
            show_conn(conn["conn"], "from")
        if "calls" in parts:
            for calls in (conn["calls"], conn["backlog"]["waiting"], conn["batch_calls"]):
                for call in members_of(calls, "bow__server_call"):
                    show_server_call(call, now_ns)


def show_balancer(balancer, parts, now_ns):
    if "connections" in parts:
        for conn in members_of(balancer["subchannels"]["conns"], "bow__client_conn", "at"):
            show_conn(conn["conn"], "to")
    if "calls" in parts:
        for calls in ("held", "queue", "open"):
            for call in members_of(balancer["calls"][calls], "bow__client_call", "at"):
                show_client_call(call, now_ns)


def show_loop(loop, thread):
    now_ns = int(loop["now_ns"])
    print(f"loop {loop['name'].string()}: thread {thread.num} ({thread.name}), "
          f"{atomic(loop['n_channels'])} channels, {atomic(loop['counters']['turns'])} turns"
          f"{', waiting for events' if str(loop['phase']) == 'BOW__LOOP_IDLE' else ', busy: see its backtrace'}; its "
          f"time is {seconds(now_ns)}")


class Bowline(gdb.Command):
    """Show loops, connections, calls and streams: bowline [loops | connections | calls]."""

    def __init__(self):
        super().__init__("bowline", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        parts = {"": ("loops", "connections", "calls")}.get(argument, (argument,))
        if parts[0] not in ("loops", "connections", "calls"):
            raise gdb.GdbError("bowline [loops | connections | calls]")
        type_of("bow_loop")
        loops = find_loops()
        if not loops:
            print("no thread runs a loop of Bowline's")
        for loop, thread in loops:
            show_loop(loop, thread)
            now_ns = int(loop["now_ns"])
            for worker in workers_of(loop):
                show_worker(worker, parts, now_ns)
            for balancer in balancers_of(loop):
                show_balancer(balancer, parts, now_ns)


Bowline()
