// SPDX-License-Identifier: GPL-3.0-or-later
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault_point.h"

#define PAGE 4096U

/* Which way the bytes go. */
enum dir { IN, OUT };

/* A whole range must fit into user space as the kernel counts it: file offsets are signed. */
static bool range_ok(uint64_t addr, size_t len)
{
	return addr <= INT64_MAX && len <= (uint64_t)INT64_MAX - addr;
}

/* EIO is what /proc/PID/mem says of a hole, EINVAL of an address beyond user space. */
static int hole_errno(int err)
{
	return err == EIO || err == EINVAL ? -EFAULT : -err;
}

/* Bytes moved through a descriptor of /proc/PID/mem, short at a hole; -EFAULT if it starts there.
 */
static ssize_t move_fd(int fd, enum dir dir, uint64_t addr, char *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		off_t at = (off_t)(addr + done);
		ssize_t n = dir == IN ? pread(fd, buf + done, len - done, at)
				      : pwrite(fd, buf + done, len - done, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && done == 0)
			return hole_errno(errno);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	/* a read of nothing: the address space is gone with its process */
	return done == 0 && len ? -ESRCH : (ssize_t)done;
}

static ssize_t move_by_file(pid_t pid, enum dir dir, uint64_t addr, char *buf, size_t len)
{
	char path[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, (dir == IN ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	n = move_fd(fd, dir, addr, buf, len);
	close(fd);
	return n;
}

/*
 * Bytes moved, short at the first hole; -EFAULT if there is one right at the start. The kernel
 * stops a transfer of one piece at the page that it cannot reach and tells how far it got
 * (process_vm_readv(2)), so a short transfer is continued to learn why.
 */
static ssize_t move_some(pid_t pid, enum dir dir, uint64_t addr, char *buf, size_t len)
{
	size_t done = 0;

	if (len == 0)
		return 0;
	if (!range_ok(addr, len))
		return -EFAULT;
	while (done < len) {
		struct iovec here = { buf + done, len - done };
		struct iovec there = { (void *)(uintptr_t)(addr + done), len - done };
		ssize_t n = dir == IN ? process_vm_readv(pid, &here, 1, &there, 1, 0)
				      : process_vm_writev(pid, &here, 1, &there, 1, 0);

		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n == 0 || errno == EFAULT)
			break;
		if (errno == ENOSYS || errno == EPERM)
			return move_by_file(pid, dir, addr, buf, len);
		if (errno == EINTR)
			continue;
		return -errno;
	}
	return done ? (ssize_t)done : -EFAULT;
}

static int move_all(pid_t pid, enum dir dir, uint64_t addr, char *buf, size_t len)
{
	ssize_t n = move_some(pid, dir, addr, buf, len);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EFAULT;
}

int mem_read(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	return move_all(pid, IN, addr, buf, len);
}

int mem_write(pid_t pid, uint64_t addr, const void *buf, size_t len)
{
	fault_point();
	/* OUT only reads from the buffer; iovec has no const */
	return move_all(pid, OUT, addr, (char *)(uintptr_t)buf, len);
}

ssize_t mem_read_some(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	ssize_t n;

	if (addr > INT64_MAX)
		return 0;
	if (!range_ok(addr, len))
		len = (size_t)((uint64_t)INT64_MAX - addr);
	n = move_some(pid, IN, addr, buf, len);
	return n == -EFAULT ? 0 : n;
}

int mem_read_str(pid_t pid, uint64_t addr, char *buf, size_t max)
{
	size_t done = 0;

	if (max == 0)
		return -ENAMETOOLONG;
	buf[0] = '\0';
	while (done < max) {
		/* up to the end of the page: the string may end right before a hole */
		size_t n = PAGE - (size_t)((addr + done) % PAGE);
		int r;

		if (n > max - done)
			n = max - done;
		r = mem_read(pid, addr + done, buf + done, n);
		if (r) {
			buf[done] = '\0';
			return r;
		}
		if (memchr(buf + done, '\0', n))
			return 0;
		done += n;
	}
	buf[max - 1] = '\0';
	return -ENAMETOOLONG;
}

int mem_open_force(int procfd)
{
	int fd = openat(procfd, "mem", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int mem_write_force(int memfd, uint64_t addr, const void *buf, size_t len)
{
	ssize_t n;

	if (len == 0)
		return 0;
	if (!range_ok(addr, len))
		return -EFAULT;
	fault_point();
	n = move_fd(memfd, OUT, addr, (char *)(uintptr_t)buf, len);
	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EFAULT;
}
