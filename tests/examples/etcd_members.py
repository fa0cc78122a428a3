# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Members of a real etcd in a scratch folder, and gRPC's own client to them.

Knows nothing of what is tested.
"""
import concurrent.futures
import contextlib
import os
import shutil
import subprocess
import sys

import grpc

import example

MAY_BE_TRIED_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED,
                      grpc.StatusCode.UNKNOWN, grpc.StatusCode.CANCELLED)
WRITERS = 16


class Missing(Exception):
    """etcd cannot be had here, and why."""


class Member:
    """One etcd, which is killed and started again on the same data."""

    def __init__(self, folder, name):
        self.name, self.folder = name, os.path.join(folder, name)
        self.client = f"127.0.0.1:{example.free_port()}"
        self.peer = f"127.0.0.1:{example.free_port()}"
        self.cluster = self.me()
        self.process = None

    def me(self):
        return f"{self.name}=http://{self.peer}"

    def start(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ETCD")}
        self.process = subprocess.Popen([
            "etcd", "--name", self.name, "--data-dir", self.folder,
            "--listen-client-urls", "http://" + self.client,
            "--advertise-client-urls", "http://" + self.client,
            "--listen-peer-urls", "http://" + self.peer,
            "--initial-advertise-peer-urls", "http://" + self.peer,
            "--initial-cluster", self.cluster, "--heartbeat-interval", "50",
            "--election-timeout", "500", "--experimental-watch-progress-notify-interval", "1s",
            "--logger", "zap", "--log-level", "error", "--log-outputs", self.folder + ".log",
        ], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def restart(self):
        self.kill()
        self.start()


@contextlib.contextmanager
def members(folder, *names):
    """A cluster of them, started; killed at the end."""
    if shutil.which("etcd") is None:
        raise Missing("there is no etcd (package etcd-server)")
    cluster = [Member(folder, name) for name in names]
    try:
        for member in cluster:
            member.cluster = ",".join(each.me() for each in cluster)
            member.start()
        yield cluster
    except BaseException:
        for member in cluster:
            with contextlib.suppress(OSError), open(member.folder + ".log") as log:
                print(f"{member.name}: {log.read()[-2000:]}", file=sys.stderr)
        raise
    finally:
        for member in cluster:
            member.kill()


class Peer:
    """gRPC's own client, from the same .proto: what it finds is what Bowline's must have found."""

    def __init__(self, folder, protos, protoc, addresses):
        if not os.path.exists(os.path.join(folder, "etcd_pb2.py")):
            subprocess.run([protoc, "-I", protos, "--python_out", folder, "mvcc.proto",
                            "etcd.proto"], check=True)
            sys.path.insert(0, folder)
        self.messages = __import__("etcd_pb2")
        self.channel = grpc.insecure_channel("ipv4:" + ",".join(addresses), options=[
            ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500),
            ("grpc.lb_policy_name", "round_robin")])
        self.token = None  # sent with each call
        # So many threads wait at once; each retries what the loss of a server cut off.
        self.threads = concurrent.futures.ThreadPoolExecutor(WRITERS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.threads.shutdown()
        self.channel.close()

    def raw(self, path, request, reply=bytes):
        """One call, tried again while the server is not there."""
        call = self.channel.unary_unary("/etcdserverpb." + path, response_deserializer=reply)
        for last in [False] * 30 + [True]:
            try:
                return call(request, timeout=example.PATIENCE_S / 10, wait_for_ready=True,
                            metadata=[("token", self.token)] if self.token else None)
            except grpc.RpcError as error:
                if last or error.code() not in MAY_BE_TRIED_AGAIN:
                    raise
        return None

    def call(self, path, request_name, reply_name, **fields):
        request = getattr(self.messages, request_name)(**fields)
        return self.raw(path, request.SerializeToString(),
                        getattr(self.messages, reply_name).FromString)

    def put(self, key, value, lease=0):
        return self.call("KV/Put", "PutRequest", "PutResponse", key=key.encode(),
                         value=value.encode(), lease=lease).header.revision

    def put_all(self, pairs):
        """Many at a time. Returns what waits for all to be there."""
        waiting = [self.threads.submit(self.put, key, value) for key, value in pairs]
        return lambda: [each.result() for each in waiting]

    def delete(self, key):
        return self.call("KV/DeleteRange", "DeleteRangeRequest", "DeleteRangeResponse",
                         key=key.encode()).deleted

    def log_in(self, name, password):
        self.token = self.call("Auth/Authenticate", "AuthenticateRequest", "AuthenticateResponse",
                               name=name, password=password).token

    def compact(self, revision):
        self.call("KV/Compact", "CompactionRequest", "CompactionResponse", revision=revision)

    def below(self, prefix):
        """All of them, by key."""
        end = (prefix[:-1] + chr(ord(prefix[-1]) + 1)).encode()
        found, start, more = {}, prefix.encode(), True
        while more:
            reply = self.call("KV/Range", "RangeRequest", "RangeResponse", key=start, range_end=end,
                              limit=5000)
            found.update((kv.key.decode(), kv) for kv in reply.kvs)
            more = reply.more
            start = reply.kvs[-1].key + b"\0" if more else b""
        return found
