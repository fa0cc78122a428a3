#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The etcd client, driving a real etcd: keys, pages, transactions, leases, watches, users; a server
that is killed, and compacted behind a watch.

usage: etcd.py [--long] CLIENT PROTOS PROTOC

Exit 77 where there is no etcd; with --long, which does the same at length and with three members,
that is a failure.
"""
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import example
from etcd_members import Missing, Peer, members

EVENT = re.compile(r"^(\d+) (put|delete) (\S+)(?: = (.*))?$")
FORGOTTEN = "are forgotten"


class Client:
    """The example's program, on one target."""

    def __init__(self, program, addresses, *options):
        self.command = [program, *options]
        self.target = "grpc:list:" + ",".join(addresses) if addresses[1:] else "grpc:" + addresses[0]

    def run(self, *words):
        return subprocess.run([*self.command, self.target, *words], capture_output=True, text=True,
                              timeout=example.PATIENCE_S, check=False)

    def good(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.splitlines()

    def bad(self, *words):
        done = self.run(*words)
        assert done.returncode == 1, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def running(self, *words):
        return example.program(*self.command, self.target, *words)


def keys_and_transactions(client, peer):
    revision = int(client.good("put", "colour", "green")[0].split()[0])
    assert client.good("get", "colour") == [f"{revision} is colour = green"]
    assert peer.below("colour")["colour"].value == b"green"
    assert f"{revision} is colour = green" in client.bad("create", "colour", "red")
    later = int(client.good("replace", "colour", "blue", str(revision))[0].split()[0])
    assert f"{later} is colour = blue" in client.bad("replace", "colour", "red", str(revision))
    assert client.good("delete", "colour") == ["1 deleted"]
    assert "there is no key colour" in client.bad("get", "colour")
    assert "no key colour" in client.bad("replace", "colour", "red", str(later))
    client.good("create", "colour", "red")
    assert "OUT_OF_RANGE" in client.bad("compact", "1000000")


def pages(client, peer):
    peer.put_all((f"page/{i}", f"{i}") for i in range(7))()
    peer.put("pagf", "behind the prefix")
    lines = client.good("range", "page/", "3")
    assert [line for line in lines if line.startswith("page of")] == [
        "page of 3, 7 from here on", "page of 3, 4 from here on", "page of 1, 1 from here on"]
    assert [line.split()[2:] for line in lines if " is " in line] == [
        [f"page/{i}", "=", f"{i}"] for i in range(7)]
    assert client.good("range", "nothing/") == ["page of 0, 0 from here on"]
    assert any("pagf" in line for line in client.good("range", ""))


def pages_of_one_moment(client, peer):
    """What is put between two pages is in none: the program waits until its output is read on."""
    peer.put_all((f"moment/{i:03}", "x" * 1000) for i in range(600))()
    with client.running("range", "moment/", "10") as reader:
        reader.wait_line("moment/000")
        peer.put("moment/then", "")
        peer.delete("moment/599")
        reader.wait_line("^page of 10, 10 from here on$")
        reader.process.wait(example.PATIENCE_S)
        found = [line.split()[2] for line in reader.lines if " is " in line]
        assert found == [f"moment/{i:03}" for i in range(600)]


def lease(client, peer):
    def held():
        return peer.below("lock/").get("lock/a")

    with client.running("hold", "lock/a", "me", "3") as holder:
        holder.wait_line("^lock/a is there, ")
        first = held()
        with client.running("watch", "unkept") as clock:  # a lease that nobody renews
            clock.wait_line("watching$")
            granted = peer.call("Lease/LeaseGrant", "LeaseGrantRequest", "LeaseGrantResponse", TTL=4)
            peer.put("unkept", "", granted.ID)
            clock.wait_line("delete unkept$")
        assert held().mod_revision == first.mod_revision, "it was not renewed"
        assert not any("lost" in line for line in holder.lines)
        peer.call("Lease/LeaseRevoke", "LeaseRevokeRequest", "LeaseRevokeResponse", ID=first.lease)
        holder.wait_line(f"^lock/a lost, lease {first.lease:x}: the server has it no more$")
        second = int(holder.wait_line(f"^lock/a is there, lease (?!{first.lease:x})(.*)$")[1], 16)
        assert held().lease == second
    assert held() is None, "the key outlived its holder"


def watch(client, peer):
    revision = peer.put("watched/a", "1")
    with client.running("watch", "watched/") as watcher:
        watcher.wait_line(f"^{revision} is watched/a = 1$")
        watcher.wait_line(f"^{revision} watching$")
        peer.put("watchee", "another")
        peer.put("watched/b", "2 \\\n")
        watcher.wait_line(f"^{revision + 2} put watched/b = 2 \\\\x5c\\\\x0a$")
        peer.delete("watched/a")
        watcher.wait_line(f"^{revision + 3} delete watched/a$")
        last = peer.put("unwatched", "")
        watcher.wait_line(f"^{last} progress$")
        assert not any("watchee" in line for line in watcher.lines)
    assert "usage" in client.run("watch").stderr


def events_of(watcher):
    return [found.groups() for found in map(EVENT.match, watcher.lines) if found]


def assert_all_once(watcher, peer, prefix):
    """What the watch has told of is what has been put: each key as often as its version says."""
    told, last, count = events_of(watcher), {}, {}
    revisions = [int(event[0]) for event in told]
    assert all(a < b for a, b in itertools.pairwise(revisions)), "doubled, or out of order"
    for revision, _, key, value in told:
        last[key] = (int(revision), value)
        count[key] = count.get(key, 0) + 1
    truth = peer.below(prefix)
    assert count == {key: kv.version for key, kv in truth.items()}, "missed"
    assert last == {key: (kv.mod_revision, kv.value.decode()) for key, kv in truth.items()}
    return len(told)


def seen(watcher):
    """The revision of the last line that has been read."""
    return max(int(event[0]) for event in events_of(watcher))


def killed_under_load(client, peer, member, n_puts, n_kills):
    """Puts, and a kill now and then; what the watch has seen is compacted away behind it."""
    with client.running("watch", "load/") as watcher:
        watcher.wait_line("watching$")
        wait = peer.put_all((f"load/{i:06}", f"{i}") for i in range(n_puts))
        for kill in range(1, n_kills + 1):
            watcher.wait_line(f" put load/{n_puts * kill // (n_kills + 1):06} ")
            member.restart()
            peer.compact(seen(watcher))
        wait()
        peer.put("load/end", "")
        watcher.wait_line(" put load/end")
        n_told = assert_all_once(watcher, peer, "load/")
        again = [line for line in watcher.lines if "watching again" in line]
        assert again and not any(FORGOTTEN in line for line in watcher.lines)
    return n_told, len(again)


def state_of(watcher):
    """What somebody has who follows the lines."""
    state = {}
    for line in watcher.lines:
        found = re.match(r"^(\d+) (is|put|delete) (\S+)(?: = (.*))?$", line)
        if line == "state":
            state = {}
        elif found and found[2] == "delete":
            state.pop(found[3])
        elif found:
            state[found[3]] = found[4]
    return state


def compacted_meanwhile(client, peer, member):
    """The watch is away while what it has not seen is forgotten."""
    peer.put_all((f"state/{i}", "old") for i in range(1200))()  # more than a page of them
    with client.running("watch", "state/") as watcher:
        watcher.wait_line("watching$")
        watcher.process.send_signal(signal.SIGSTOP)
        member.restart()
        peer.delete("state/7")
        peer.compact(peer.put("state/8", "new"))
        watcher.process.send_signal(signal.SIGCONT)
        watcher.wait_line(FORGOTTEN)
        peer.put("state/end", "")
        watcher.wait_line("state/end")
        expected = {key: kv.value.decode() for key, kv in peer.below("state/").items()}
        assert state_of(watcher) == expected and "state/7" not in expected


def cut_within_a_revision(client, peer, member):
    """Replies so large that they are cut, and a server that is lost between two pieces."""
    value, n_keys, n_revisions = b"x" * 12_000, 100, 6
    first = peer.put("before", "")
    for i in range(n_revisions):
        peer.call("KV/Txn", "TxnRequest", "TxnResponse", success=[
            {"request_put": {"key": b"large/%d/%d" % (i, j), "value": value}}
            for j in range(n_keys)])
    with client.running("watch", "large/", str(first)) as watcher:
        watcher.wait_line("large/0/0 = ")
        member.restart()  # it has not read on: the next piece is on its way
        watcher.wait_line(f"large/{n_revisions - 1}/{n_keys - 1} = ")
        keys = [key for _, _, key, _ in events_of(watcher)]
        assert keys == [f"large/{i}/{j}" for i in range(n_revisions) for j in range(n_keys)]
        assert any("watching again" in line for line in watcher.lines)


def text_field(number, text):
    return bytes([number << 3 | 2, len(text)]) + text.encode()


def users(program, client, peer, member):
    """With users on, as the last: who has no token gets nothing; one that ends is replaced."""
    root = text_field(1, "root")
    peer.raw("Auth/UserAdd", root + text_field(2, "secret"))
    peer.raw("Auth/UserGrantRole", root + text_field(2, "root"))
    peer.raw("Auth/AuthEnable", b"")
    assert "-u USER:PASSWORD" in client.bad("get", "colour")
    wrong = Client(program, [member.client], "-p", "-u", "root:wrong")
    assert "authentication failed" in wrong.bad("get", "colour")
    unsafe = Client(program, [member.client], "-u", "root:secret")
    assert "not secured" in unsafe.bad("get", "colour")
    known = Client(program, [member.client], "-p", "-u", "root:secret")
    revision = int(known.good("put", "colour", "blue")[0].split()[0])
    with known.running("watch", "colour") as watcher, \
            known.running("hold", "colour/lock", "me", "60") as holder:
        watcher.wait_line(f"^{revision} is colour = blue$")
        holder.wait_line("^colour/lock is there, ")
        peer.log_in("root", "secret")
        peer.raw("Auth/UserChangePassword", root + text_field(2, "secret"))  # ends all its tokens
        member.restart()
        watcher.wait_line("watching again .*invalid auth token")
        known.good("put", "colour", "white")
        watcher.wait_line("put colour = white")
    assert "there is no key" in known.bad("get", "colour/lock"), "it was not given back"
    assert "authentication failed" in wrong.bad("watch", "colour")


def short(program, folder, protos, protoc):
    with members(folder, "one") as [member], \
            Peer(folder, protos, protoc, [member.client]) as peer:
        client = Client(program, [member.client])
        peer.put("up", "")
        for scenario in (keys_and_transactions, pages, pages_of_one_moment, lease, watch):
            timed(scenario, client, peer)
        n_told, n_again = timed(killed_under_load, client, peer, member, 3000, 1)
        timed(compacted_meanwhile, client, peer, member)
        timed(cut_within_a_revision, client, peer, member)
        timed(users, program, client, peer, member)
    print(f"{n_told} changes were told of once, over {n_again + 1} streams")


def timed(scenario, *arguments):
    begun = time.monotonic()
    result = scenario(*arguments)
    print(f"{scenario.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
    return result


def one_member_away(client, peer, cluster, away_s):
    """Each is killed in turn for so long, while a lease is held and all that is put is watched."""
    numbers = itertools.count()
    with client.running("watch", "load/") as watcher, \
            client.running("hold", "lock/a", "me", "10") as holder:
        watcher.wait_line("watching$")
        holder.wait_line("^lock/a is there, ")
        for member in cluster:
            member.kill()
            until = time.monotonic() + away_s
            while time.monotonic() < until:
                last = f"load/{next(numbers):06}"
                peer.put_all((f"{last}/{i}", "") for i in range(1000))()
                watcher.wait_line(f" put {last}/999 = $")
            member.start()
        peer.put("load/end", "")
        watcher.wait_line(" put load/end")
        assert not any("lost" in line for line in holder.lines), holder.lines
        assert not any(FORGOTTEN in line for line in watcher.lines)
        n_again = sum("watching again" in line for line in watcher.lines)
        assert n_again, "the watch was on none of them"
        return assert_all_once(watcher, peer, "load/"), n_again


def long(program, folder, protos, protoc):
    with members(folder, "one") as [member], \
            Peer(folder, protos, protoc, [member.client]) as peer:
        client = Client(program, [member.client])
        told = timed(killed_under_load, client, peer, member, 100_000, 5)
        print("one member: %d changes were told of once, %d times the stream was lost" % told)
    with members(folder, "a", "b", "c") as cluster:
        addresses = [member.client for member in cluster]
        with Peer(folder, protos, protoc, addresses) as peer:
            peer.put("up", "")
            told = timed(one_member_away, Client(program, addresses), peer, cluster, 60)
    print("three members: %d changes were told of once, %d times the stream was lost" % told)


def main(is_long, program, protos, protoc):
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        try:
            (long if is_long else short)(program, folder, protos, protoc)
        except Missing as missing:
            print(f"{'FAILED' if is_long else 'SKIP'}: {missing}")
            return 1 if is_long else 77
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] == "--long", *map(os.path.abspath, sys.argv[-3:])))
