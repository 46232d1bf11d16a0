# SPDX-License-Identifier: GPL-3.0-or-later
# Turns agent/mallctl.tsv (name, C type, access, condition, meaning) into rows of struct ctl_name.
# POSIX awk. A line that is not understood ends the build.

function fail(text)
{
	printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
	failed = 1
	exit 1
}

function quote(s)
{
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	return "\"" s "\""
}

function starts(s, with)
{
	return substr(s, 1, length(with)) == with
}

BEGIN {
	FS = "\t"
	type["void"] = "CTL_VOID"
	type["bool"] = "CTL_BOOL"
	type["unsigned"] = "CTL_UNSIGNED"
	type["size_t"] = "CTL_SIZE"
	type["ssize_t"] = "CTL_SSIZE"
	type["int64_t"] = "CTL_SSIZE"
	type["uint32_t"] = "CTL_U32"
	type["uint64_t"] = "CTL_U64"
	type["const char *"] = "CTL_STRING"
	type["int"] = "CTL_INT"
	access["--"] = "0"
	access["r-"] = "CTL_READ"
	access["-w"] = "CTL_WRITE"
	access["rw"] = "CTL_READ | CTL_WRITE"
	access["r- or -w"] = "CTL_READ | CTL_WRITE"
	# Live blocks would dangle, callbacks would run, handles would leak or be freed twice, or a
	# private ABI would be guessed at.
	never["arena.<i>.reset"]
	never["arena.<i>.destroy"]
	never["arena.<i>.extent_hooks"]
	never["arenas.create"]
	never["tcache.create"]
	never["tcache.flush"]
	never["tcache.destroy"]
}

FNR == 1 {
	if ($0 != "name\ttype\taccess\tcondition\tmeaning")
		fail("unexpected header line")
	next
}

{
	if (NF != 5)
		fail("expected 5 columns, found " NF)
	if (!($3 in access))
		fail("unknown access " $3)
	if ($1 in seen)
		fail("name twice: " $1)
	seen[$1]
	printf "{%s, %s, %s, %s, %s, %s, %s, %s},\n", quote($1), quote($2),
		($2 in type) ? type[$2] : "CTL_OTHER", access[$3],
		quote($4 == "-" ? "" : $4), quote($5), starts($1, "thread.") ? "true" : "false",
		(($1 in never) || starts($1, "experimental.")) ? "true" : "false"
}

END {
	if (!failed && NR < 2) {
		print "no rows" > "/dev/stderr"
		exit 1
	}
}
