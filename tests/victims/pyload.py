# SPDX-License-Identifier: GPL-3.0-or-later
"""An interpreter with many threads: malloc and free through ctypes, large lists, sleeps, select, locks with timeouts, asyncio.
Each thread checks itself."""
import asyncio
import ctypes
import os
import select
import sys
import threading
import time
import zlib


def wrong(text):
    os.write(2, (text + "\n").encode())
    os._exit(1)


def check_time(what, start, least):
    took = time.monotonic() - start
    if not least <= took < least + 10:
        wrong("%s took %f s, not %f" % (what, took, least))


# Each thread says once that it has all its descriptors and runs.
started = threading.Semaphore(0)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def c_heap(seed):
    """Without the lock of the interpreter: malloc really runs at the same time as others."""
    n = seed
    started.release()
    while True:
        n = (n * 1103515245 + 12345) % 2147483648
        size = n % 60000 + 1
        p = libc.malloc(size)
        ctypes.memset(p, n & 255, size)
        if ctypes.string_at(p, size) != bytes([n & 255]) * size:
            wrong("a block of %d bytes has changed" % size)
        libc.free(p)
        if n % 16 == 0:
            time.sleep(0.001)


def lists():
    turn = 0
    started.release()
    while True:
        turn += 1
        big = [str(i + turn) for i in range(20000)]
        if sum(map(int, big)) != 20000 * turn + 20000 * 19999 // 2:
            wrong("a list has changed")
        data = zlib.compress("".join(big).encode(), 1)
        if zlib.decompress(data).decode() != "".join(big):
            wrong("what was packed came out differently")
        time.sleep(0.002)


def sleeper():
    started.release()
    while True:
        start = time.monotonic()
        time.sleep(0.004)
        check_time("sleep", start, 0.004)


def selecter():
    r, w = os.pipe()
    poll = select.poll()
    poll.register(r, select.POLLIN)
    epoll = select.epoll()
    epoll.register(r, select.EPOLLIN)
    started.release()
    while True:
        start = time.monotonic()
        if select.select([r], [], [], 0.005)[0]:
            wrong("select found something in an empty pipe")
        check_time("select", start, 0.005)
        start = time.monotonic()
        if poll.poll(6) or epoll.poll(0.007):
            wrong("poll found something in an empty pipe")
        check_time("poll and epoll", start, 0.0129)
        os.write(w, b"x")
        if not poll.poll(10000) or os.read(r, 10) != b"x":
            wrong("a byte was lost")


def locker(lock, turn):
    started.release()
    while True:
        start = time.monotonic()
        if turn.acquire(timeout=0.003):
            wrong("a lock was got that is held")
        check_time("acquire", start, 0.003)
        with lock:
            time.sleep(0.0005)


async def ticker(n):
    while True:
        start = time.monotonic()
        await asyncio.sleep(n / 1000)
        check_time("asyncio.sleep", start, n / 1000 - 0.0001)


async def many():
    started.release()
    await asyncio.gather(*[ticker(n) for n in range(2, 20)])


held = threading.Lock()
held.acquire()
lock = threading.Lock()
work = [(c_heap, (1,)), (c_heap, (2,)), (lists, ()), (sleeper, ()), (selecter, ()), (locker, (lock, held)), (locker, (lock, held)),
        (asyncio.run, (many(),))]
for target, args in work:
    threading.Thread(target=target, args=args, daemon=True).start()
for _ in work:
    started.acquire()
os.write(1, b"ready\n")
while os.read(0, 64):
    pass
os._exit(0)
