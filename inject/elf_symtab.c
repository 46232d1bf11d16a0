// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf_symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Our own index looks at no more of a name than this, so that a file whose symbols all name one
 * huge string costs no more than its size. */
#define NAME_HASH_MAX 256
#define NAME_MAX_EACH 4096
#define SYM_NONE      UINT32_MAX

/* The hidden bit of an entry of .gnu.version: not the default version of the name. */
#define VERSYM_HIDDEN 0x8000

void symtab_set_strings(struct symtab *t, const char *str, size_t len)
{
	while (len && str[len - 1])
		len--;
	t->str = str;
	t->str_len = len;
}

void symtab_drop(struct symtab *t)
{
	free(t->index);
	t->index = NULL;
}

static const char *sym_name(const struct symtab *t, const Elf64_Sym *s)
{
	/* a name without a character is none either */
	return s->st_name && s->st_name < t->str_len && t->str[s->st_name] ? t->str + s->st_name
									   : NULL;
}

/* The rules of the dynamic linker (glibc elf/dl-lookup.c): a definition has a section and, unless
 * it is absolute or thread-local, a value. */
static bool sym_defined(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF)
		return false;
	if (!s->st_value && s->st_shndx != SHN_ABS && type != STT_TLS)
		return false;
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC || type == STT_TLS ||
	       type == STT_GNU_IFUNC || type == STT_COMMON;
}

/* Length of a name without the "@VERSION" that ld leaves in .symtab. */
static size_t base_len(const char *name)
{
	const char *at = strchr(name, '@');

	return at && at != name ? (size_t)(at - name) : strlen(name);
}

static bool name_is(const struct symtab *t, const Elf64_Sym *s, const char *name)
{
	const char *have = sym_name(t, s);
	size_t len;

	if (!have)
		return false;
	if (t->dynamic)
		return !strcmp(have, name);
	len = strlen(name);
	return !strncmp(have, name, len) && (!have[len] || have[len] == '@');
}

static bool sym_hidden(const struct symtab *t, size_t i)
{
	const char *name, *at;

	if (t->ver)
		return i < t->ver_n && (t->ver[i] & VERSYM_HIDDEN);
	if (t->dynamic)
		return false;
	name = sym_name(t, &t->sym[i]);
	at = name ? strchr(name, '@') : NULL;
	return at && at[1] != '@';
}

/* Which of two definitions of a name wins; 0 for none at all. */
static int sym_rank(const struct symtab *t, size_t i)
{
	const Elf64_Sym *s = &t->sym[i];
	unsigned bind = ELF64_ST_BIND(s->st_info);
	int rank = sym_hidden(t, i) ? 1 : 5;

	if (bind == STB_LOCAL)
		return t->dynamic ? 0 : rank;
	return rank + (bind == STB_WEAK ? 1 : 2);
}

struct best {
	size_t i;
	int rank;
};

static void consider(const struct symtab *t, size_t i, const char *name, struct best *b)
{
	int rank;

	if (i >= t->n || !sym_defined(&t->sym[i]) || !name_is(t, &t->sym[i], name))
		return;
	rank = sym_rank(t, i);
	if (rank > b->rank) {
		b->rank = rank;
		b->i = i;
	}
}

/* Layout of DT_GNU_HASH: four words, the Bloom filter (64-bit words), buckets, chains. */
struct gnu_view {
	uint32_t buckets, first, bloom, shift;
	size_t at_buckets, at_chains; /* word indexes */
};

static bool gnu_open(const uint32_t *g, size_t words, struct gnu_view *v)
{
	uint64_t chains;

	if (!g || words < 4)
		return false;
	*v = (struct gnu_view){ .buckets = g[0], .first = g[1], .bloom = g[2], .shift = g[3] };
	chains = 4 + 2 * (uint64_t)v->bloom + v->buckets;
	if (!v->buckets || !v->bloom || v->shift > 31 || chains > words)
		return false;
	v->at_buckets = 4 + 2 * (size_t)v->bloom;
	v->at_chains = (size_t)chains;
	return true;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static bool bloom_may_hold(const struct symtab *t, const struct gnu_view *v, uint32_t h)
{
	size_t w = 4 + 2 * (size_t)((h / 64) % v->bloom);
	uint64_t word = t->gnu[w] | (uint64_t)t->gnu[w + 1] << 32;

	return (word >> (h % 64)) & (word >> ((h >> v->shift) % 64)) & 1;
}

static void gnu_lookup(const struct symtab *t, const struct gnu_view *v, const char *name,
		       struct best *b)
{
	uint32_t h = gnu_hash(name), hv;
	size_t i, at;

	if (!bloom_may_hold(t, v, h))
		return;
	i = t->gnu[v->at_buckets + h % v->buckets];
	if (i < v->first)
		return;
	/* i grows by one in each round and stays below both n and the table's end. */
	for (; i < t->n; i++) {
		at = v->at_chains + (i - v->first);
		if (at >= t->gnu_n)
			return;
		hv = t->gnu[at];
		if ((hv | 1) == (h | 1))
			consider(t, i, name, b);
		if (hv & 1)
			return;
	}
}

size_t gnu_hash_count(const uint32_t *gnu, size_t words, size_t max)
{
	struct gnu_view v;
	size_t last = 0, i;

	if (!gnu_open(gnu, words, &v))
		return 0;
	for (i = 0; i < v.buckets; i++)
		if (gnu[v.at_buckets + i] > last)
			last = gnu[v.at_buckets + i];
	if (last < v.first)
		return v.first < max ? v.first : max;
	for (i = v.at_chains + (last - v.first); i < words && last < max; i++, last++)
		if (gnu[i] & 1)
			return last + 1;
	return last;
}

static uint32_t sysv_hash(const char *name)
{
	uint32_t h = 0, g;

	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		g = h & 0xf0000000;
		h ^= g >> 24;
		h &= ~g;
	}
	return h;
}

/* Layout of DT_HASH: nbucket, nchain, buckets, chains. */
static bool sysv_usable(const struct symtab *t)
{
	return t->sysv && t->sysv_n >= 2 && t->sysv[0] &&
	       2 + (uint64_t)t->sysv[0] + t->sysv[1] <= t->sysv_n;
}

static void sysv_lookup(const struct symtab *t, const char *name, struct best *b)
{
	uint32_t nbucket = t->sysv[0], nchain = t->sysv[1], left = nchain;
	uint32_t i = t->sysv[2 + sysv_hash(name) % nbucket];

	/* A loop in the chain ends after as many rounds as there are symbols. */
	for (; i && i < nchain && left; left--) {
		consider(t, i, name, b);
		i = t->sysv[2 + nbucket + i];
	}
}

static uint32_t own_hash(const char *name, size_t len)
{
	uint32_t h = 2166136261u;
	size_t i;

	for (i = 0; i < len && i < NAME_HASH_MAX; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619u;
	return h;
}

/* Like base_len, but never looks further than the hash does. */
static size_t hash_len(const char *name)
{
	size_t len = strnlen(name, NAME_HASH_MAX);
	const char *at = memchr(name, '@', len);

	return at && at != name ? (size_t)(at - name) : len;
}

static int index_build(struct symtab *t)
{
	uint32_t heads = 64, *idx, slot;
	const char *name;
	size_t i;

	if (t->n >= SYM_NONE / 4)
		return -EBADMSG;
	while (heads < t->n)
		heads *= 2;
	idx = malloc((heads + t->n) * sizeof(*idx));
	if (!idx)
		return -ENOMEM;
	memset(idx, 0xff, heads * sizeof(*idx));
	for (i = t->n; i-- > 0;) {
		idx[heads + i] = SYM_NONE;
		name = sym_name(t, &t->sym[i]);
		if (!name || !sym_defined(&t->sym[i]))
			continue;
		slot = own_hash(name, hash_len(name)) & (heads - 1);
		idx[heads + i] = idx[slot];
		idx[slot] = (uint32_t)i;
	}
	t->index = idx;
	t->heads = heads;
	return 0;
}

/* Links always lead to a higher symbol number, so a chain ends. */
static int index_lookup(struct symtab *t, const char *name, struct best *b)
{
	uint32_t i;
	int err;

	if (!t->index) {
		err = index_build(t);
		if (err)
			return err;
	}
	i = t->index[own_hash(name, hash_len(name)) & (t->heads - 1)];
	for (; i != SYM_NONE; i = t->index[t->heads + i])
		consider(t, i, name, b);
	return 0;
}

static void sym_fill(const struct symtab *t, const Elf64_Sym *s, struct elf_sym *out)
{
	*out = (struct elf_sym){
		.value = s->st_value,
		.size = s->st_size,
		.type = ELF64_ST_TYPE(s->st_info),
		.bind = ELF64_ST_BIND(s->st_info),
		.dynamic = t->dynamic,
	};
}

int symtab_lookup(struct symtab *t, const char *name, struct elf_sym *out)
{
	struct best b = { 0 };
	struct gnu_view v;
	int err;

	if (!t->n || !*name)
		return -ENOENT;
	if (gnu_open(t->gnu, t->gnu_n, &v)) {
		gnu_lookup(t, &v, name, &b);
	} else if (sysv_usable(t)) {
		sysv_lookup(t, name, &b);
	} else {
		err = index_lookup(t, name, &b);
		if (err)
			return err;
	}
	if (!b.rank)
		return -ENOENT;
	sym_fill(t, &t->sym[b.i], out);
	return 0;
}

bool symtab_refers(const struct symtab *t, const char *name)
{
	struct gnu_view v;
	size_t n = t->n, i;

	/* what is hashed is defined, and stands behind all that is not */
	if (gnu_open(t->gnu, t->gnu_n, &v) && v.first < n)
		n = v.first;
	for (i = 0; i < n; i++)
		if (t->sym[i].st_shndx == SHN_UNDEF && name_is(t, &t->sym[i], name))
			return true;
	return false;
}

/* Calls fn with the name as it is, or cut before its version. */
static int each_one(const struct symtab *t, const char *name, const struct elf_sym *s,
		    int (*fn)(const char *name, const struct elf_sym *s, void *arg), void *arg)
{
	char buf[NAME_MAX_EACH];
	size_t len;

	if (t->dynamic || !strchr(name, '@'))
		return fn(name, s, arg);
	len = base_len(name);
	if (len >= sizeof(buf))
		return 0;
	memcpy(buf, name, len);
	buf[len] = 0;
	return fn(buf, s, arg);
}

int symtab_each(const struct symtab *t,
		int (*fn)(const char *name, const struct elf_sym *s, void *arg), void *arg)
{
	bool in_file = false;
	struct elf_sym out;
	const char *name;
	size_t i;
	int ret;

	for (i = 0; i < t->n; i++) {
		const Elf64_Sym *s = &t->sym[i];

		name = sym_name(t, s);
		if (ELF64_ST_TYPE(s->st_info) == STT_FILE)
			in_file = name && *name;
		if (!name || !sym_defined(s))
			continue;
		if (t->dynamic && ELF64_ST_BIND(s->st_info) == STB_LOCAL)
			continue;
		if (strnlen(name, NAME_MAX_EACH) == NAME_MAX_EACH)
			continue;
		sym_fill(t, s, &out);
		out.scoped = !t->dynamic && in_file && out.bind == STB_LOCAL;
		ret = each_one(t, name, &out, fn, arg);
		if (ret)
			return ret;
	}
	return 0;
}
