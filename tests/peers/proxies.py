# SPDX-License-Identifier: Apache-2.0 OR MIT
"""nginx and HAProxy in front of a server, with TLS on both sides of it or on neither.

Knows nothing of what goes through.
"""
import pathlib
import shutil
import socket
import subprocess
import time

HAPROXY = """
global
  tune.h2.max-concurrent-streams {streams}
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{front} {front_tls}proto h2
  default_backend back
backend back
  http-reuse {reuse}
  server bowline 127.0.0.1:{port} {back_tls}proto h2
"""
HAPROXY_TLS = {
    "front_tls": "ssl crt {pair} alpn h2 ",
    "back_tls": "ssl verify required ca-file {ca} verifyhost {name} sni str({name}) alpn h2 ",
}

NGINX = """
daemon off;
error_log stderr;
pid {folder}/pid;
worker_processes 1;
events {{ worker_connections 2000; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream back {{ server 127.0.0.1:{port}; keepalive 16; }}
  server {{
    listen 127.0.0.1:{front} {front_tls}http2;
    {own_tls}
    client_max_body_size 0;
    location / {{ grpc_pass {scheme}://back; {back_tls}}}
  }}
}}
"""
NGINX_TLS = {
    "front_tls": "ssl ",
    "scheme": "grpcs",
    "back_tls": "grpc_ssl_verify on; grpc_ssl_trusted_certificate {ca}; grpc_ssl_name {name}; "
                "grpc_ssl_server_name on; ",
    "own_tls": "ssl_certificate {certificate}; ssl_certificate_key {key};",
}

PLAIN = {"front_tls": "", "back_tls": "", "own_tls": "", "scheme": "grpc"}
KINDS = {"haproxy": (HAPROXY, HAPROXY_TLS), "nginx": (NGINX, NGINX_TLS)}


def program(kind):
    """Where it is; None: nowhere."""
    return shutil.which(kind, path="/usr/sbin:/usr/bin:/sbin:/bin")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def takes_connections(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except ConnectionRefusedError:
        return False


class Proxy:
    """One that listens on port `front` of 127.0.0.1 once it is made, for a server on `port`.

    `streams`: how many calls HAProxy gives to a connection that has not said how many it takes;
    `reuse`: which of them share one. `tls`: the certificate of both; None: plaintext.
    """

    def __init__(self, kind, folder, port, streams=100, reuse="safe", tls=None):
        folder = pathlib.Path(folder)
        self.front = free_port()
        text, secured = KINDS[kind]
        words = dict(PLAIN)
        if tls is not None:
            pair = folder / "pair.pem"
            pair.write_text(pathlib.Path(tls.certificate).read_text() +
                            pathlib.Path(tls.key).read_text())
            words.update((place, how.format(pair=pair, ca=tls.ca, certificate=tls.certificate,
                                            key=tls.key, name=tls.name))
                         for place, how in secured.items())
        config = folder / "config"
        config.write_text(text.format(folder=folder, front=self.front, port=port,
                                      streams=streams, reuse=reuse, **words))
        command = ([program(kind), "-q", "-db", "-f", config] if kind == "haproxy"
                   else [program(kind), "-p", folder, "-c", config])
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while not takes_connections(self.front):
            if self.child.poll() is not None:
                raise SystemExit(f"{kind} ended")
            time.sleep(0.01)

    def end(self):
        self.child.terminate()
        self.child.wait(timeout=60)
