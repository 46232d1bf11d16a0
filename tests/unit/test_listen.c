// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../repl/listen.h"

Test(listen, addresses)
{
	static const struct {
		const char *text, *is;
		bool loopback;
	} good[] = {
		{ "127.0.0.1:9748", "127.0.0.1:9748", true },
		{ "9748", "127.0.0.1:9748", true },
		{ "0", "127.0.0.1:0", true },
		{ "localhost:1", "127.0.0.1:1", true },
		{ "127.255.0.9:65535", "127.255.0.9:65535", true },
		{ "[::1]:9748", "[::1]:9748", true },
		{ "0.0.0.0:9748", "0.0.0.0:9748", false },
		{ "[::]:9748", "[::]:9748", false },
		{ "128.0.0.1:80", "128.0.0.1:80", false },
		{ "[fe80::1]:80", "[fe80::1]:80", false },
		/* not said to be loopback: who means that writes it plainly */
		{ "[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", false },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct listen_at at;
		char text[LISTEN_TEXT];
		struct diag d;

		diag_clear(&d);
		cr_assert_eq(listen_parse(good[i].text, &at, &d), 0, "%s: %s", good[i].text,
			     d.text);
		cr_expect_str_eq(listen_text(&at.addr, text), good[i].is);
		cr_expect_eq(at.loopback, good[i].loopback, "%s", good[i].text);
	}
}

Test(listen, what_is_no_address)
{
	static const char *const bad[] = {
		"",
		":",
		":9748",
		"127.0.0.1",
		"127.0.0.1:",
		"::1:9748",
		"[::1]",
		"[::1]9748",
		"[]:9748",
		"[::1]:65536",
		"host:80",
		"127.0.0.1:-1",
		"65536",
		"1.2.3:80",
		"127.0.0.1:80x",
		" 9748",
		"127.0.0.1:000080",
		"[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc]:80",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct listen_at at;
		struct diag d;

		diag_clear(&d);
		cr_expect_eq(listen_parse(bad[i], &at, &d), -EINVAL, "'%s'", bad[i]);
		cr_expect_eq(d.exit, HM_USAGE);
		cr_expect_str_eq(d.code, "bad-listen");
	}
}

/* Port 0 becomes one that is free; the next one cannot have the same. */
Test(listen, a_port_that_is_taken)
{
	char text[LISTEN_TEXT], again[LISTEN_TEXT];
	struct listen_at at, same;
	struct diag d;
	int fd, other;

	diag_clear(&d);
	cr_assert_eq(listen_parse("0", &at, &d), 0);
	cr_assert_eq(listen_open(&at, &fd, text, &d), 0, "%s", d.text);
	cr_assert_neq(strcmp(text, "127.0.0.1:0"), 0);
	cr_assert_eq(listen_parse(text, &same, &d), 0);
	cr_expect_eq(listen_open(&same, &other, again, &d), -EADDRINUSE);
	cr_expect_eq(d.exit, HM_CALL_FAILED);
	cr_expect_str_eq(d.code, "listen-failed");
	cr_expect_not_null(strstr(d.text, text));
	close(fd);
	cr_expect_eq(listen_open(&same, &other, again, &d), 0, "%s", d.text);
	close(other);
}
