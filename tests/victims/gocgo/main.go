// SPDX-License-Identifier: GPL-3.0-or-later

// A Go program with cgo: 20 goroutines, each on an operating system thread of its own, alternate between the Go heap, the C heap
// and a sleep in C. Together they leave some 100 MB free in the C heap.
package main

/*
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 320, SIZE = 16000 };

// Fills and frees blocks below a pin, which is returned.
static void *retain(void)
{
	void *block[BLOCKS], *pin;

	for (int i = 0; i < BLOCKS; i++)
		if ((block[i] = malloc(SIZE)))
			memset(block[i], 1, SIZE);
	pin = malloc(64);
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	return pin;
}

// 0, or 1 if the sleep was cut short.
static int nap(long ns)
{
	struct timespec ts = { .tv_nsec = ns }, a, b;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		rc = nanosleep(&ts, &ts); // Go's own signals interrupt it, and the rest is slept then
	while (rc && errno == EINTR);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return rc || (b.tv_sec - a.tv_sec) * 1000000000L + (b.tv_nsec - a.tv_nsec) < ns;
}
*/
import "C"

import (
	"os"
	"runtime"
	"sync"
	"unsafe"
)

func wrong(text string) {
	os.Stderr.WriteString(text + "\n")
	os.Exit(1)
}

func work(id int, ready *sync.WaitGroup) {
	runtime.LockOSThread()
	pin := (*[64]byte)(C.retain())
	pin[63] = byte(id)
	ready.Done()
	live := make([][]byte, 64)
	for turn := 1; ; turn++ {
		slot := turn % len(live)
		if live[slot] != nil && live[slot][len(live[slot])-1] != byte(slot) {
			wrong("a slice has changed")
		}
		live[slot] = make([]byte, turn%5000+1)
		live[slot][len(live[slot])-1] = byte(slot)
		p := C.malloc(C.size_t(turn%2000 + 1))
		if C.nap(4000000) != 0 {
			wrong("nanosleep returned early")
		}
		C.free(p)
		if (*[64]byte)(unsafe.Pointer(pin))[63] != byte(id) {
			wrong("the pin has changed")
		}
	}
}

func main() {
	var ready sync.WaitGroup
	for id := 0; id < 20; id++ {
		ready.Add(1)
		go work(id, &ready)
	}
	ready.Wait()
	os.Stdout.WriteString("ready\n")
	buf := make([]byte, 64)
	for {
		if _, err := os.Stdin.Read(buf); err != nil {
			return
		}
	}
}
