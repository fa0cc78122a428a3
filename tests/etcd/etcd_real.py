#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""libbowline-etcd with a real etcd: servers registered, found and lost, locks, a server that is
killed, compacted and restarted, users; what other programs write is read, and they read ours.

usage: etcd_real.py EXAMPLES PEER PROTOS PROTOC

Exit 77 where there is no etcd.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, sys.argv[1])
import example  # noqa: E402
from etcd_members import Missing, Peer, members  # noqa: E402

TTL = "6"


class Programs:
    """etcd_peer on one target."""

    def __init__(self, program, target, layout="naming", user=None):
        self.command = [program, target, layout, *(["-u", user] if user else [])]

    def __call__(self, *words):
        return example.program(*self.command, *words)


def found_by_others(start, peer):
    with start("watch", "shop") as watcher, start("register", "shop", "10.0.0.7:50051", TTL) as server:
        server.wait_line("^registered ")
        value = json.loads(peer.below("shop/")["shop/10.0.0.7:50051"].value)
        assert (value["Op"], value["Addr"]) == (0, "10.0.0.7:50051"), value
        watcher.wait_line(r"^servers 10\.0\.0\.7:50051\*1$")
        # What etcd's Go package writes.
        peer.put("shop/10.0.0.8:1", '{"Op":0,"Addr":"10.0.0.8:1","Metadata":null}')
        peer.put("shop/10.0.0.9:1", '{"Op":0,"Addr":"10.0.0.9:1","Metadata":{"weight":4,"x":[]}}')
        watcher.wait_line(r"^servers 10\.0\.0\.7:50051\*1 10\.0\.0\.8:1\*1 10\.0\.0\.9:1\*4$")
        server.stop()
        assert "shop/10.0.0.7:50051" not in peer.below("shop/"), "it was not taken out"
        watcher.wait_line(r"^servers 10\.0\.0\.8:1\*1 10\.0\.0\.9:1\*4$")


def renewed(start, peer):
    """Longer than a lease lives that nobody renews."""
    with start("register", "kept", "10.0.0.7:1", TTL) as server:
        server.wait_line("^registered ")
        first = peer.below("kept/")["kept/10.0.0.7:1"]
        granted = peer.call("Lease/LeaseGrant", "LeaseGrantRequest", "LeaseGrantResponse", TTL=9)
        peer.put("clock/a:1", '{"Addr":"a:1"}', granted.ID)
        with start("watch", "clock") as clock:
            clock.wait_line(r"^servers a:1\*1$")
            clock.wait_line("^servers$")
        again = peer.below("kept/")["kept/10.0.0.7:1"]
        assert again.mod_revision == first.mod_revision, "it was put again"
        assert not any("lost" in line for line in server.lines), server.lines
        peer.delete("kept/10.0.0.7:1")  # by somebody, while the lease lives
        server.wait_line("^lost: its key in etcd was deleted$")
        while "kept/10.0.0.7:1" not in peer.below("kept/"):
            pass
        assert peer.below("kept/")["kept/10.0.0.7:1"].lease == first.lease
        peer.call("Lease/LeaseRevoke", "LeaseRevokeRequest", "LeaseRevokeResponse", ID=first.lease)
        server.wait_line(f"^registered (?!{first.lease:x}$)")
        assert "kept/10.0.0.7:1" in peer.below("kept/")


def killed(start, peer, member):
    """etcd is killed -9, changed and compacted behind the watch, and everything goes on."""
    peer.put("load/a:1", '{"Addr":"a:1"}')
    with start("watch", "load") as watcher, start("register", "load", "b:2", TTL) as server:
        watcher.wait_line(r"^servers a:1\*1 b:2\*1$")
        member.kill()
        watcher.wait_line(r"^servers a:1\*1 b:2\*1 error: asking etcd at ")
        watcher.process.send_signal(signal.SIGSTOP)
        member.start()
        peer.delete("load/a:1")
        peer.compact(peer.put("load/c:3", '{"Addr":"c:3"}'))
        watcher.process.send_signal(signal.SIGCONT)
        watcher.wait_line(r"^servers b:2\*1 c:3\*1$")
        assert not any("lost" in line for line in server.lines), server.lines


def locks(start, peer):
    first = example.Program(*start.command, "lock", "leader", TTL)
    try:
        token = int(first.wait_line(r"^acquired (\d+)$")[1])
        assert [kv.create_revision for kv in peer.below("leader/").values()] == [token]
        with start("lock", "leader", TTL) as second:
            while len(peer.below("leader/")) < 2:  # it stands in line
                pass
            assert not second.lines
            first.process.kill()  # its lease ends
            first.process.wait()
            assert int(second.wait_line(r"^acquired (\d+)$")[1]) > token
            key, = peer.below("leader/")
            peer.delete(key)
            second.wait_line("^lost: its key in etcd was deleted$")
        assert not peer.below("leader/")
    finally:
        first.close()


def go_zero(start, peer):
    with start("watch", "zero.rpc") as watcher, start("register", "zero.rpc", "10.0.0.7:1", TTL) as one:
        lease = int(one.wait_line("^registered (.*)$")[1], 16)
        assert peer.below("zero.rpc/")[f"zero.rpc/{lease}"].value == b"10.0.0.7:1"
        peer.put("zero.rpc/7587865", "10.0.0.8:1")
        watcher.wait_line(r"10\.0\.0\.8:1\*1")
        watcher.wait_line(r"10\.0\.0\.7:1\*1")


def text_field(number, text):
    return bytes([number << 3 | 2, len(text)]) + text.encode()


def users(program, peer, member):
    """With users on, as the last."""
    root = text_field(1, "root")
    peer.raw("Auth/UserAdd", root + text_field(2, "secret"))
    peer.raw("Auth/UserGrantRole", root + text_field(2, "root"))
    peer.raw("Auth/AuthEnable", b"")
    peer.log_in("root", "secret")
    start = Programs(program, member.client, user="root:secret")
    wrong = Programs(program, member.client, user="root:wrong")
    with start("watch", "known") as watcher, start("register", "known", "a:1", TTL) as server:
        watcher.wait_line(r"^servers a:1\*1$")
        with wrong("watch", "known") as stranger:
            stranger.wait_line("^servers error: ")  # a time-out, where hashing passwords takes long
        peer.raw("Auth/UserChangePassword", root + text_field(2, "secret"))  # ends all its tokens
        member.restart()
        peer.token = None  # etcd refuses who asks for one with an old one
        peer.log_in("root", "secret")
        peer.put("known/b:2", '{"Addr":"b:2"}')
        watcher.wait_line(r"^servers a:1\*1 b:2\*1$")
        server.stop()
        watcher.wait_line(r"^servers b:2\*1$")


def timed(scenario, *arguments):
    begun = time.monotonic()
    scenario(*arguments)
    print(f"{scenario.__name__}: {time.monotonic() - begun:.1f} s", flush=True)


def etcdctl_lock(start, peer, member):
    """etcd's own command stands in the same line."""
    if shutil.which("etcdctl") is None:
        print("no etcdctl (package etcd-client): that it waits for our locks was not tried")
        return
    environment = {**os.environ, "ETCDCTL_API": "3"}
    with start("lock", "both", TTL) as ours:
        ours.wait_line("^acquired ")
        theirs = subprocess.Popen(["etcdctl", "--endpoints", member.client, "lock", "both", "echo", "mine"],
                                  env=environment, stdout=subprocess.PIPE, text=True)
        while len(peer.below("both/")) < 2:
            pass
        assert theirs.poll() is None
        ours.stop()
        assert theirs.communicate(timeout=example.PATIENCE_S)[0].strip().endswith("mine")


def main(program, protos, protoc):
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        try:
            with members(folder, "one") as [member], \
                    Peer(folder, protos, protoc, [member.client]) as peer:
                peer.put("up", "")
                start = Programs(program, member.client)
                timed(found_by_others, start, peer)
                timed(renewed, start, peer)
                timed(killed, start, peer, member)
                timed(locks, start, peer)
                timed(etcdctl_lock, start, peer, member)
                timed(go_zero, Programs(program, member.client, "go-zero"), peer)
                timed(users, program, peer, member)
        except Missing as missing:
            print(f"SKIP: {missing}")
            return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[2:])))
