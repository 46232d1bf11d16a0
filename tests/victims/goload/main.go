// SPDX-License-Identifier: GPL-3.0-or-later

// A Go program with cgo under load: goroutines in loops without a call, which only a signal can preempt, a collector that never
// rests, the C heap used from whatever thread a goroutine is on, channels, timers and callbacks from C. Everything is checked.
package main

/*
#include <stdlib.h>
#include <string.h>

extern int goCallback(int);

// A block that is filled, checked and freed; 0 if it was as it should be.
static int c_heap(int seed)
{
	size_t n = 100 + (size_t)seed % 40000;
	unsigned char *p = malloc(n), *q;

	if (!p)
		return 1;
	memset(p, seed & 255, n);
	q = realloc(p, n * 2);
	if (!q)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (q[i] != (seed & 255))
			return 1;
	free(q);
	return 0;
}

static int c_back(int n)
{
	char *p = strdup("over C and back");
	int r = goCallback(n);

	free(p);
	return r;
}
*/
import "C"

import (
	"os"
	"runtime"
	"sort"
	"strconv"
	"time"
)

func wrong(text string) {
	os.Stderr.WriteString(text + "\n")
	os.Exit(1)
}

//export goCallback
func goCallback(n C.int) C.int {
	s := make([]byte, 0, 16)
	s = strconv.AppendInt(s, int64(n), 10)
	v, err := strconv.Atoi(string(s))
	if err != nil || v != int(n) {
		wrong("a number came back differently")
	}
	return n + 1
}

// No call, no allocation: preempted by SIGURG only.
func tight() {
	for {
		a, b := uint64(0), uint64(1)
		for i := 0; i < 30000000; i++ {
			a, b = b, a+b
		}
		if a != 3352754168425900544 {
			wrong("the sum of a loop is " + strconv.FormatUint(a, 10))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func heap(seed int) {
	live := make([][]int, 200)
	for turn := seed; ; turn++ {
		slot := (turn * 7919) % len(live)
		if s := live[slot]; s != nil {
			if !sort.IntsAreSorted(s) || s[0] != slot {
				wrong("a slice has changed")
			}
		}
		s := make([]int, 1+turn%2000)
		for i := range s {
			s[i] = slot + i
		}
		live[slot] = s
		if turn%50 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func cHeap(seed int) {
	for i := seed; ; i++ {
		if C.c_heap(C.int(i%1000003)) != 0 {
			wrong("a block of the C heap has changed")
		}
		if C.c_back(C.int(i%1000003)) != C.int(i%1000003+1) {
			wrong("a callback answered wrongly")
		}
		if i%20 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func pass(in <-chan int, out chan<- int) {
	for v := range in {
		out <- v + 1
	}
}

func ring() {
	first := make(chan int)
	in := first
	for i := 0; i < 20; i++ {
		out := make(chan int)
		go pass(in, out)
		in = out
	}
	for n := 0; ; n++ {
		first <- n
		if v := <-in; v != n+20 {
			wrong("the ring gave " + strconv.Itoa(v))
		}
		if n%16 == 0 {
			time.Sleep(500 * time.Microsecond)
		}
	}
}

func timers() {
	for {
		start := time.Now()
		select {
		case <-time.After(5 * time.Millisecond):
		case <-time.After(20 * time.Second):
			wrong("a timer was forgotten")
		}
		if took := time.Since(start); took < 5*time.Millisecond || took > 10*time.Second {
			wrong("a timer of 5 ms took " + took.String())
		}
	}
}

func main() {
	go tight()
	go tight()
	go heap(1)
	go heap(2)
	go cHeap(1)
	go cHeap(500000)
	go ring()
	go timers()
	go func() {
		for {
			runtime.GC()
			time.Sleep(10 * time.Millisecond)
		}
	}()
	time.Sleep(300 * time.Millisecond)
	os.Stdout.WriteString("ready\n")
	buf := make([]byte, 64)
	for {
		if _, err := os.Stdin.Read(buf); err != nil {
			return
		}
	}
}
