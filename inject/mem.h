// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MEM_H
#define HM_MEM_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"

/*
 * Another process's memory. Reads and writes use process_vm_readv(2)/process_vm_writev(2), and
 * /proc/PID/mem where these are refused (ENOSYS, EPERM by seccomp). All or nothing: 0, or -EFAULT
 * for a hole, -ESRCH, -EPERM.
 */
HM_MUST_CHECK int mem_read(pid_t pid, uint64_t addr, void *buf, size_t len);
HM_MUST_CHECK int mem_write(pid_t pid, uint64_t addr, const void *buf, size_t len);
/* As much as is readable from addr on: bytes read (0 if the first page is a hole), or a negative
 * errno. */
HM_MUST_CHECK ssize_t mem_read_some(pid_t pid, uint64_t addr, void *buf, size_t len);
/* A C string of at most max-1 bytes, NUL-terminated; -ENAMETOOLONG if there is no NUL within max.
 */
HM_MUST_CHECK int mem_read_str(pid_t pid, uint64_t addr, char *buf, size_t max);
/*
 * Writes through a descriptor of /proc/PID/mem, which a tracer may use on pages without write
 * permission (FOLL_FORCE, private mappings are copied). memfd is opened by mem_open_force before
 * the thread is held.
 */
HM_MUST_CHECK int mem_open_force(int procfd);
HM_MUST_CHECK int mem_write_force(int memfd, uint64_t addr, const void *buf, size_t len);
#endif
