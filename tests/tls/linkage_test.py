#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Who needs no TLS loads no OpenSSL: libbowline does not ask for it, libbowline-tls does.

    linkage_test.py LIBBOWLINE LIBBOWLINE_TLS
"""

import re
import shutil
import subprocess
import sys


def needed(library):
    run = subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True)
    return set(re.findall(r"NEEDED\s+(\S+)", run.stdout))


def is_openssl(name):
    return name.startswith(("libssl.", "libcrypto."))


def main():
    if shutil.which("objdump") is None:
        print("skipped: no objdump; install binutils")
        return 77
    plain, tls = needed(sys.argv[1]), needed(sys.argv[2])
    wrong = [f"libbowline needs {name}" for name in sorted(plain) if is_openssl(name)]
    if not any(map(is_openssl, tls)):
        wrong.append("libbowline-tls needs no OpenSSL, so this test looks at the wrong thing")
    if not any(name.startswith("libbowline.so") for name in tls):
        wrong.append("libbowline-tls does not need libbowline")
    print("\n".join(wrong) or "clean")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
