// SPDX-License-Identifier: GPL-3.0-or-later
/* scripts/prometheus, grafana, kubernetes and ansible, each by the program that reads it. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell.h"
#include "victim.h"

#define SCHEMA "tests/fixtures/automation/kubernetes.schema.json"

/* ---- Prometheus */

Test(automation, alert_rules_are_valid)
{
	shell_begin();
	shell_need("promtool", "prometheus");
	shell_ok("promtool check rules scripts/prometheus/*.yml");
	shell_end();
}

/* Each with numbers at which it fires, and such at which it does not: were the age that numbers may
 * have another one, that would be noticed. */
Test(automation, alert_rules_fire)
{
	shell_begin();
	shell_need("promtool", "prometheus");
	shell_ok("promtool test rules tests/fixtures/automation/rules-test.yml");
	shell_ok("sed \"s,  - ../.*,  - $D/r.yml,\" tests/fixtures/automation/rules-test.yml "
		 ">\"$D/t.yml\" "
		 "&& sed 's/> 600/> 1800/' scripts/prometheus/heapmedic.rules.yml >\"$D/r.yml\"");
	shell_fails("promtool test rules \"$D/t.yml\"", "FAILED");
	shell_end();
}

Test(automation, prometheus_takes_the_metrics)
{
	const struct run_opts o = { .program = "sh" };
	const char *args[] = { "-c", "\"$HEAPMEDIC\" -p $P metrics | promtool check metrics",
			       NULL };
	char pid[16];
	struct victim v;
	struct run r;

	shell_begin();
	shell_need("promtool", "prometheus");
	victim_start_named(&v, "jemlinked", "1", NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	setenv("P", pid, 1);
	run_with(&r, &o, args);
	cr_expect_eq(r.exit, 0, "%s%s", r.out, r.err);
	run_free(&r);
	victim_stop(&v);
	shell_fails("echo 'heapmedic_rss{' | promtool check metrics", "error");
	shell_end();
}

/* ---- Grafana */

Test(automation, the_dashboard_is_whole)
{
	shell_begin();
	shell_need("promtool", "prometheus");
	shell_ok("$ASK dashboard scripts/grafana/heapmedic.json >\"$D/exprs.yml\" && "
		 "promtool check rules \"$D/exprs.yml\"");
	shell_ok("sed 's/\"id\": 2,/\"id\": 1,/' scripts/grafana/heapmedic.json >\"$D/id.json\"");
	shell_fails("$ASK dashboard \"$D/id.json\"", "two panels have the same id");
	shell_ok("sed 's/\"y\": 13,/\"y\": 12,/' scripts/grafana/heapmedic.json >\"$D/over.json\"");
	shell_fails("$ASK dashboard \"$D/over.json\"", " lies over ");
	shell_ok("sed 's/heapmedic_swap{/heapmedic_swap{{/' scripts/grafana/heapmedic.json "
		 ">\"$D/expr.json\"");
	shell_fails("$ASK dashboard \"$D/expr.json\" >\"$D/exprs.yml\" && "
		    "promtool check rules \"$D/exprs.yml\"",
		    "parse");
	shell_end();
}

/* ---- Kubernetes */

Test(automation, manifests_are_valid)
{
	shell_begin();
	shell_need("/usr/lib/python3/dist-packages/yaml", "python3-yaml");
	shell_need("/usr/lib/python3/dist-packages/jsonschema", "python3-jsonschema");
	shell_ok("$ASK manifests " SCHEMA " scripts/kubernetes/*");
	/* what must not be in them, and what must */
	shell_ok("sed 's/^\\( *\\)memory: 256Mi/&\\n\\1cpu: 100m/' scripts/kubernetes/sidecar.yaml "
		 ">\"$D/cpu.yaml\"");
	shell_fails("$ASK manifests " SCHEMA " \"$D/cpu.yaml\"", "'cpu' was unexpected");
	shell_ok("sed /readOnlyRoot/d scripts/kubernetes/metrics-daemonset.yaml >\"$D/root.yaml\"");
	shell_fails("$ASK manifests " SCHEMA " \"$D/root.yaml\"", "readOnlyRootFilesystem");
	shell_ok("sed s/hostPID/hostPid/ scripts/kubernetes/metrics-daemonset.yaml "
		 ">\"$D/key.yaml\"");
	shell_fails("$ASK manifests " SCHEMA " \"$D/key.yaml\"", "'hostPid' was unexpected");
	shell_end();
}

/* The guard beside a program: what it is told is taken, with another name and an end. */
Test(automation, the_sidecars_command_is_ours)
{
	const struct run_opts none = { 0 };
	const char *words[RUN_ARGS] = { "--dry-run", "-p" };
	char pid[16];
	struct victim v;
	struct run r;
	size_t n = 3;

	shell_begin();
	shell_need("/usr/lib/python3/dist-packages/yaml", "python3-yaml");
	victim_start_named(&v, "retained", "1", NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	words[2] = pid;
	shell_words("$ASK container scripts/kubernetes/sidecar.yaml heapmedic | "
		    "sed '/^--name$/d; /^APP$/d' && printf '%s\\n' --for 1s",
		    words, &n, RUN_ARGS);
	run_with(&r, &none, words);
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, "guard ends: 1 looks, 0 actions"), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
	shell_end();
}

/* The loop of the DaemonSet, one turn of it: as the shell of the image runs it. */
Test(automation, the_daemonsets_loop_writes_files)
{
	char path[128], script[PATH_MAX + 256];
	const struct victim_plan plan = { .argv = { path, "1" } };
	struct victim v;

	shell_begin();
	shell_need("/usr/lib/python3/dist-packages/yaml", "python3-yaml");
	snprintf(path, sizeof(path), "%s/hmk%d", shell_dir(), (int)getpid());
	snprintf(script, sizeof(script), "cp '%s' '%s'", victim_path("retained"), path);
	shell_ok(script);
	victim_start(&v, &plan);
	snprintf(script, sizeof(script),
		 "$ASK container scripts/kubernetes/metrics-daemonset.yaml heapmedic | sed '1d; "
		 "s,/heapmedic-static,\"$HEAPMEDIC\",; s/sleep 60/exit 0/' >\"$D/loop\" && "
		 "NAMES=hmk%d DIR=\"$D\" sh \"$D/loop\" && "
		 "grep -q '^heapmedic_rss{' \"$D/heapmedic-hmk%d.prom\"",
		 (int)getpid(), (int)getpid());
	shell_ok(script);
	victim_stop(&v);
	shell_end();
}

/* ---- Ansible */

/* The playbook on this host, for the process of that name. */
static void play(struct run *r, const char *name, const char *more)
{
	char script[600];

	snprintf(script, sizeof(script),
		 "HOME=\"$D\" ANSIBLE_NOCOLOR=1 ANSIBLE_PIPELINING=1 "
		 "ANSIBLE_LOCALHOST_WARNING=False "
		 "ansible-playbook -i localhost, -c local scripts/ansible/heapmedic.yml "
		 "-e heapmedic_path=\"$(realpath \"$HEAPMEDIC\")\" -e heapmedic_become=false "
		 "-e ansible_python_interpreter=/usr/bin/python3 -e heapmedic_name=%s %s",
		 name, more);
	shell(r, script);
}

Test(automation, the_playbook, .timeout = 200)
{
	char path[128], name[16], script[PATH_MAX + 200];
	const struct victim_plan plan = { .argv = { path, "1" } };
	struct victim v;
	struct run r;

	shell_begin();
	shell_need("ansible-playbook", "ansible-core");
	shell_ok("HOME=\"$D\" ansible-playbook --syntax-check -i localhost, "
		 "scripts/ansible/heapmedic.yml");
	snprintf(name, sizeof(name), "hmp%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/%s", shell_dir(), name);
	snprintf(script, sizeof(script), "cp '%s' '%s'", victim_path("retained"), path);
	shell_ok(script);
	victim_start(&v, &plan);
	play(&r, name, "-e heapmedic_trim=true --check");
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, " retained: "), "%s", r.out);
	cr_expect_not_null(strstr(r.out, " would come back"), "%s", r.out);
	cr_expect_not_null(strstr(r.out, " changed=0 "), "%s", r.out);
	run_free(&r);
	play(&r, name, "-e heapmedic_trim=true");
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, " returned\""), "%s", r.out);
	cr_expect_not_null(strstr(r.out, " changed=1 "), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
	shell_end();
}
