#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The device plugin, registered at a kubelet that is played by gRPC's own server and client.

usage: device_plugin.py PLUGIN

What is on the wire is written by field numbers here, and not made of the example's .proto.
"""
import concurrent.futures
import os
import queue
import signal
import socket
import stat
import sys
import tempfile

import grpc

import example
from wire import decode, decode_map, encode

RESOURCE = "example.com/serial"
ENDPOINT = "example.com-serial.sock"
NODE = "/dev/null"  # what the devices of the test are links to


def text(fields, number):
    return fields.get(number, [b""])[0].decode()


class Kubelet:
    """Serves Registration in a folder as kubelet does: a plugin that registers is called back before
    it is answered."""

    def __init__(self, folder, *refusals):
        self.folder, self.refusals = folder, list(refusals)  # of the first ones who register
        self.called_back = lambda: None
        self.registered = queue.Queue()
        self.server = None
        self.n_starts = 0
        self.own = tempfile.TemporaryDirectory()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.own.cleanup()

    def stop(self):
        if self.server:
            self.server.stop(0).wait()

    def start(self):
        """Over whatever the last one has left: the folder is cleaned up, then there is a socket."""
        self.stop()
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            "v1beta1.Registration", {"Register": grpc.unary_unary_rpc_method_handler(self.register)})])
        # When its server ends gRPC removes the path that it was given, whosever that is by then.
        self.n_starts += 1
        path = f"{self.own.name}/{self.n_starts}"
        self.server.add_insecure_port("unix:" + path)
        self.server.start()
        os.link(path, f"{self.folder}/kubelet.sock")

    def register(self, request, context):
        fields = decode(request)
        if self.refusals:
            context.abort(*self.refusals.pop(0))
        with self.dial(text(fields, 2)) as channel:
            options = call(channel, "GetDevicePluginOptions", b"")
        self.called_back()
        told = text(fields, 1), text(fields, 2), text(fields, 3), options
        context.add_callback(lambda: self.registered.put(told))  # when the answer is on its way
        return b""

    def wait_registered(self):
        got = self.registered.get(timeout=example.PATIENCE_S)
        assert got == ("v1beta1", ENDPOINT, RESOURCE, b""), got

    def dial(self, endpoint=ENDPOINT):
        # By itself gRPC would take up a connection to a socket that was there before.
        return grpc.insecure_channel(f"unix:{self.folder}/{endpoint}",
                                     options=[("grpc.use_local_subchannel_pool", 1)])


def call(channel, method, request):
    return channel.unary_unary("/v1beta1.DevicePlugin/" + method)(
        request, timeout=example.PATIENCE_S, wait_for_ready=True)


def failed(channel, method, request):
    try:
        call(channel, method, request)
    except grpc.RpcError as error:
        return error.code(), error.details()
    raise AssertionError(f"{method} went well")


class Watch:
    """What ListAndWatch says, one list after the other."""

    def __init__(self, channel):
        self.stream = channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")(
            b"", timeout=example.PATIENCE_S, wait_for_ready=True)

    def next(self):
        devices = map(decode, decode(next(self.stream)).get(1, []))
        return {text(device, 1): text(device, 2) for device in devices}


class Nodes:
    """Links to a device node, for to make nodes takes rights."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def plug(self, name):
        os.symlink(NODE, self.path(name))

    def unplug(self, name):
        os.unlink(self.path(name))


def allocate(channel, *containers):
    """For each container: its variables, its mounts and its devices."""
    request = encode(*((1, [(1, name) for name in names]) for names in containers))
    reply = decode(call(channel, "Allocate", request))
    assert list(reply) == [1], reply
    found = []
    for container in map(decode, reply[1]):
        assert set(container) <= {1, 2, 3}, container
        found.append((decode_map(container.get(1, [])),
                      list(map(decode, container.get(2, []))),
                      [tuple(text(spec, i) for i in (1, 2, 3))
                       for spec in map(decode, container.get(3, []))]))
    return found


def health(channel, nodes):
    watch = Watch(channel)
    assert watch.next() == {"ttyA": "Healthy", "ttyB": "Healthy"}
    nodes.unplug("ttyA")
    assert watch.next() == {"ttyA": "Unhealthy", "ttyB": "Healthy"}
    late = Watch(channel)
    assert late.next() == {"ttyA": "Unhealthy", "ttyB": "Healthy"}
    code, words = failed(channel, "Allocate", encode((1, [(1, "ttyB"), (1, "ttyA")])))
    assert code == grpc.StatusCode.FAILED_PRECONDITION and "ttyA is gone" in words, words
    nodes.plug("ttyA")
    for each in (watch, late):
        assert each.next() == {"ttyA": "Healthy", "ttyB": "Healthy"}
    with open(nodes.path("ttyFile"), "w"):
        pass  # no device, whatever it is called
    nodes.plug("other")
    nodes.plug("ttyC")
    for each in (watch, late):
        assert each.next() == {"ttyA": "Healthy", "ttyB": "Healthy", "ttyC": "Healthy"}
    late.stream.cancel()
    return watch


def allocation(channel, nodes, mount):
    a, b, c = (nodes.path(name) for name in ("ttyA", "ttyB", "ttyC"))
    mounts = [{1: [mount.encode()], 2: [mount.encode()], 3: [1]}]
    assert allocate(channel, ["ttyA"], ["ttyC", "ttyB"]) == [
        ({"EXAMPLE_COM_SERIAL": a}, mounts, [(a, NODE, "rw")]),
        ({"EXAMPLE_COM_SERIAL": f"{c},{b}"}, mounts, [(c, NODE, "rw"), (b, NODE, "rw")])]
    code, words = failed(channel, "Allocate", encode((1, [(1, "ttyB"), (1, "ttyX")])))
    assert code == grpc.StatusCode.NOT_FOUND and "'ttyX'" in words, words
    code, _ = failed(channel, "GetPreferredAllocation", b"")
    assert code == grpc.StatusCode.UNIMPLEMENTED


def restarted(kubelet, nodes):
    """Another kubelet, whose folder was cleaned up: it hears of the plugin, once, and can call it."""
    kubelet.start()
    kubelet.wait_registered()
    with kubelet.dial() as channel:
        watch = Watch(channel)
        assert watch.next()["ttyC"] == "Healthy"
        nodes.unplug("ttyC")
        assert watch.next()["ttyC"] == "Unhealthy"
        nodes.plug("ttyC")
        assert watch.next()["ttyC"] == "Healthy"
    assert kubelet.registered.empty(), "registered twice"


def ended(kubelet, plugin):
    """SIGTERM: who watches is told that it is over, and the socket is gone."""
    with kubelet.dial() as channel:
        watch = Watch(channel)
        watch.next()
        plugin.stop()
        assert list(watch.stream) == []
        assert watch.stream.code() == grpc.StatusCode.OK
    assert not os.path.lexists(f"{kubelet.folder}/{ENDPOINT}")


def whole_life(command, folder, nodes):
    mount = nodes.path("ttyB")
    nodes.plug("ttyB")
    nodes.plug("ttyA")
    with Kubelet(folder) as kubelet:
        kubelet.start()
        with example.program(command, "-d", folder, "-m", mount, RESOURCE,
                             nodes.path("tty*")) as plugin:
            kubelet.wait_registered()
            mode = os.stat(f"{folder}/{ENDPOINT}").st_mode
            assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600, oct(mode)
            with kubelet.dial() as channel:
                watch = health(channel, nodes)
                allocation(channel, nodes, mount)
                restarted(kubelet, nodes)  # while the stream to the last one is still there
                watch.stream.cancel()
            restarted(kubelet, nodes)
            ended(kubelet, plugin)


def late_kubelet(command, folder, nodes):
    """After a crash of everything both sockets are there, and nobody listens; then kubelet is not
    itself at once."""
    nodes.plug("ttyC")
    for name in ("kubelet.sock", ENDPOINT):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(f"{folder}/{name}")
    refusal = grpc.StatusCode.UNAVAILABLE, "not yet"
    with Kubelet(folder, refusal) as kubelet, example.program(command, "-d", folder, RESOURCE,
                                                              nodes.path("ttyC")) as plugin:
        plugin.wait_line("^listening on ")
        with kubelet.dial() as channel:
            assert Watch(channel).next() == {"ttyC": "Healthy"}
            assert allocate(channel, ["ttyC"])[0][1] == [], "a mount that nobody asked for"
        restarted(kubelet, nodes)
        ended(kubelet, plugin)


def asleep(command, folder, nodes):
    """The plugin sees at once that it was registered and that kubelet is another one."""
    nodes.plug("ttyC")
    with Kubelet(folder) as kubelet, example.program(command, "-d", folder, RESOURCE,
                                                     nodes.path("tty*")) as plugin:
        plugin.wait_line("^listening on ")
        kubelet.called_back = lambda: plugin.process.send_signal(signal.SIGSTOP)
        kubelet.start()
        kubelet.wait_registered()
        kubelet.called_back = lambda: None
        kubelet.start()
        plugin.process.send_signal(signal.SIGCONT)
        kubelet.wait_registered()
        ended(kubelet, plugin)


def ends_itself(command, folder, nodes):
    with Kubelet(folder, (grpc.StatusCode.UNKNOWN, "the name is taken")) as kubelet:
        kubelet.start()
        with example.failing(command, "-d", folder, RESOURCE, nodes.path("tty*")) as plugin:
            plugin.wait_line(f"kubelet refuses {RESOURCE}: the name is taken")
    assert not os.path.lexists(f"{folder}/{ENDPOINT}")
    with example.failing(command, "-d", folder + "/none", RESOURCE, nodes.path("tty*")) as plugin:
        plugin.wait_line("cannot watch .*/none: No such file")
    empty = nodes.path("empty")
    os.mkdir(empty)
    with example.failing(command, "-d", folder, RESOURCE, empty + "/*") as plugin:
        plugin.wait_line("^listening on ")
        os.rmdir(empty)
        plugin.wait_line("lost sight of|cannot read")


def main(command):
    for scenario in (whole_life, late_kubelet, asleep, ends_itself):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as devices:
            scenario(command, folder, Nodes(devices))
            print(f"{scenario.__name__}: passed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
