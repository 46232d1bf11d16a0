// SPDX-License-Identifier: GPL-3.0-or-later

// gopure [MIB]: a Go program without cgo, and so without any libc: 32 MiB (or MIB) live on its heap, ten goroutines on threads of their own. Built
// without symbols (-s -w).
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

func main() {
	size := 32 << 20
	if len(os.Args) > 1 {
		if mib, err := strconv.Atoi(os.Args[1]); err == nil {
			size = mib << 20
		}
	}
	var ready sync.WaitGroup
	live := make([]byte, size)
	for i := range live {
		live[i] = byte(i >> 12)
	}
	ready.Add(10)
	for i := 0; i < 10; i++ {
		go func() {
			runtime.LockOSThread()
			ready.Done()
			for {
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	ready.Wait()
	os.Stdout.WriteString("ready\n")
	for buf := make([]byte, 64); ; {
		if n, err := os.Stdin.Read(buf); n == 0 || err != nil {
			break
		}
	}
	for i := range live {
		if live[i] != byte(i>>12) {
			os.Stderr.WriteString("the heap has changed\n")
			os.Exit(1)
		}
	}
}
