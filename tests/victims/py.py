# SPDX-License-Identifier: GPL-3.0-or-later
"""A single-threaded interpreter that sleeps, allocates and checks itself, with some 90 MB kept free by its malloc."""
import os
import select
import sys
import time


def wrong(text):
    os.write(2, (text + "\n").encode())
    os._exit(1)


# Blocks over 512 bytes come from malloc. The pin is as large as they are, so that it fits no hole and lies above them: what is
# below it cannot be given back by free alone.
blocks = [b"x" * 16000 for _ in range(6000)]
pin = b"y" * 16000
del blocks
os.write(1, b"ready\n")
live = {}
turn = 0
while True:
    readable, _, _ = select.select([0], [], [], 0)
    if readable and not os.read(0, 64):
        sys.exit(0)
    start = time.monotonic()
    time.sleep(0.005)
    took = time.monotonic() - start
    if not 0.005 <= took < 5:
        wrong("slept %f s, not 0.005" % took)
    turn += 1
    live[turn % 500] = bytes([turn % 251]) * (turn % 3000 + 1)
    for key, value in live.items():
        if value.count(value[0]) != len(value):
            wrong("a block of %d bytes has changed" % len(value))
    if pin != b"y" * 16000:
        wrong("the pin has changed")
