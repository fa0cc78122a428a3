# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A CA and a server's certificate, made afresh, so that none can expire: for a name that is looked
for instead of the host's, as the public test CA has one."""
import pathlib
import subprocess

NAME = "foo.test.google.fr"


def run(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Certificate:
    name = NAME

    def __init__(self, folder):
        self.ca, self.certificate, self.key = (
            str(pathlib.Path(folder, name)) for name in ("ca.pem", "server.pem", "server.key"))
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        run(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
            "-subj", "/CN=a test CA")
        run(folder, "req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj",
            "/CN=a test server")
        pathlib.Path(folder, "names").write_text(f"subjectAltName=DNS:{NAME}\n", encoding="ascii")
        run(folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "server.pem", "-days", "2", "-extfile", "names")

    def of_server(self):
        return ["--use_tls=true", f"--cert_file={self.certificate}", f"--key_file={self.key}"]

    def of_client(self):
        return ["--use_tls=true", f"--ca_file={self.ca}", f"--server_host_override={NAME}"]
