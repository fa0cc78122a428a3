#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An example of a shop front, held to what it prints.

usage: shop.py PROGRAM NAME=LINE...
"""
import subprocess
import sys

import example

program = sys.argv[1]
asked = [argument.split("=", 1) for argument in sys.argv[2:]]
done = subprocess.run([program] + [name for name, _ in asked], capture_output=True, text=True,
                      timeout=example.PATIENCE_S)
assert done.stderr == "", done.stderr
assert done.stdout.splitlines() == [line for _, line in asked], done.stdout
