// SPDX-License-Identifier: GPL-2.0
#include "kernel/compat/signature.h"

#include <linux/btf.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#define TYPE_DEPTH_MAX 16
/* What every header has. Newer kernels declare a longer one, but may carry BTF without the rest. */
#define HEADER_BYTES (offsetof(struct btf_header, str_len) + sizeof(u32))

struct memsluice_btf {
	const char *strings;
	u32 strings_bytes;
	u32 count; /* types; ids run from 1 */
	const struct btf_type *types[]; /* by id; [0] is void */
};

struct text {
	char *at;
	size_t room;
};

static void put(struct text *text, const char *what)
{
	size_t length = strscpy(text->at, what, text->room) < 0 ? text->room - 1 : strlen(what);

	text->at += length;
	text->room -= length;
}

/* Bytes that follow a struct btf_type, or -1 for a kind that this reader does not know. */
static long tail_bytes(u32 info)
{
	u32 members = BTF_INFO_VLEN(info);

	switch (BTF_INFO_KIND(info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return members * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return members * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return members * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return members * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return members * sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	}
	return -1;
}

/* Counts the types, and notes where each one is if @btf is given. */
static long index_types(struct memsluice_btf *btf, const char *data, u32 length_bytes)
{
	u32 offset = 0, count = 0;

	while (offset < length_bytes) {
		const struct btf_type *type = (const void *)(data + offset);
		long tail;

		if (length_bytes - offset < sizeof(*type))
			return -EINVAL;
		tail = tail_bytes(type->info);
		if (tail < 0 || length_bytes - offset - sizeof(*type) < tail)
			return -EINVAL;
		count++;
		if (btf)
			btf->types[count] = type;
		offset += sizeof(*type) + tail;
	}
	return count;
}

struct memsluice_btf *memsluice_btf_open(const void *data, size_t length_bytes)
{
	const struct btf_header *header = data;
	struct memsluice_btf *btf;
	const char *types;
	u64 body_bytes;
	long count;

	if (length_bytes < HEADER_BYTES || header->magic != BTF_MAGIC ||
	    header->hdr_len < HEADER_BYTES || header->hdr_len > length_bytes)
		return ERR_PTR(-EINVAL);
	body_bytes = length_bytes - header->hdr_len;
	if (header->type_off % sizeof(u32) || !header->str_len ||
	    (u64)header->type_off + header->type_len > body_bytes ||
	    (u64)header->str_off + header->str_len > body_bytes)
		return ERR_PTR(-EINVAL);

	types = (const char *)data + header->hdr_len + header->type_off;
	count = index_types(NULL, types, header->type_len);
	if (count < 0)
		return ERR_PTR(count);
	btf = kvmalloc(struct_size(btf, types, count + 1), GFP_KERNEL);
	if (!btf)
		return ERR_PTR(-ENOMEM);
	btf->strings = (const char *)data + header->hdr_len + header->str_off;
	btf->strings_bytes = header->str_len;
	btf->count = count;
	btf->types[0] = NULL;
	if (btf->strings[btf->strings_bytes - 1]) {
		kvfree(btf);
		return ERR_PTR(-EINVAL);
	}
	index_types(btf, types, header->type_len);
	return btf;
}

void memsluice_btf_close(struct memsluice_btf *btf)
{
	kvfree(btf);
}

static const char *type_name(const struct memsluice_btf *btf, const struct btf_type *type)
{
	return type->name_off < btf->strings_bytes ? btf->strings + type->name_off : "?";
}

/* DWARF spells integers in full; declarations do not. */
static const char *int_name(const char *name)
{
	static const char *const spellings[][2] = {
		{ "long unsigned int", "unsigned long" },
		{ "long int", "long" },
		{ "long long unsigned int", "unsigned long long" },
		{ "long long int", "long long" },
		{ "short unsigned int", "unsigned short" },
		{ "_Bool", "bool" },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(spellings); i++) {
		if (!strcmp(name, spellings[i][0]))
			return spellings[i][1];
	}
	return name;
}

static void put_type(struct text *text, const struct memsluice_btf *btf, u32 id, int depth)
{
	const struct btf_type *type;

	if (!id) {
		put(text, "void");
		return;
	}
	if (id > btf->count || depth > TYPE_DEPTH_MAX) {
		put(text, "?");
		return;
	}
	type = btf->types[id];
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
		put_type(text, btf, type->type, depth + 1);
		put(text, " *");
		break;
	case BTF_KIND_CONST:
		put(text, "const ");
		fallthrough;
	case BTF_KIND_TYPE_TAG: /* __user, __rcu: not part of a C type */
		put_type(text, btf, type->type, depth + 1);
		break;
	case BTF_KIND_STRUCT:
		put(text, "struct ");
		put(text, type_name(btf, type));
		break;
	case BTF_KIND_FWD:
	case BTF_KIND_UNION:
		put(text, BTF_INFO_KIND(type->info) == BTF_KIND_FWD && !BTF_INFO_KFLAG(type->info) ?
				  "struct " :
				  "union ");
		put(text, type_name(btf, type));
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		put(text, "enum ");
		put(text, type_name(btf, type));
		break;
	case BTF_KIND_INT:
		put(text, int_name(type_name(btf, type)));
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_FLOAT:
		put(text, type_name(btf, type));
		break;
	default:
		put(text, "?");
	}
}

static void put_prototype(struct text *text, const struct memsluice_btf *btf, u32 id)
{
	const struct btf_type *prototype;
	const struct btf_param *parameters;
	u32 i, count;

	if (!id || id > btf->count || BTF_INFO_KIND(btf->types[id]->info) != BTF_KIND_FUNC_PROTO) {
		put(text, "?");
		return;
	}
	prototype = btf->types[id];
	parameters = (const struct btf_param *)(prototype + 1);
	count = BTF_INFO_VLEN(prototype->info);

	put_type(text, btf, prototype->type, 0);
	put(text, "(");
	for (i = 0; i < count; i++) {
		if (i)
			put(text, ", ");
		put_type(text, btf, parameters[i].type, 0);
	}
	put(text, count ? ")" : "void)");
}

static bool is_word(char c)
{
	return isalnum(c) || c == '_';
}

/* Where the type of the parameter that ends before @end ends: in front of the name. */
static const char *before_name(const char *start, const char *end)
{
	const char *at = end;

	while (at > start && isspace(at[-1]))
		at--;
	if (at - start == 4 && !strncmp(start, "void", 4))
		return at;
	while (at > start && is_word(at[-1]))
		at--;
	return at;
}

static size_t append_without_spaces(char *out, size_t length, const char *start, const char *end)
{
	for (; start < end && length < MEMSLUICE_SIGNATURE_MAX - 1; start++) {
		if (!isspace(*start))
			out[length++] = *start;
	}
	return length;
}

/* "int(struct folio *folio, int nid)" -> "int(structfolio*,int)" */
static void canonical_declaration(const char *declared, char out[MEMSLUICE_SIGNATURE_MAX])
{
	const char *at = declared, *stop = at + strcspn(at, "(");
	size_t length = append_without_spaces(out, 0, at, stop);

	while (*stop && *stop != ')') {
		length = append_without_spaces(out, length, stop, stop + 1);
		at = stop + 1;
		stop = at + strcspn(at, ",)");
		length = append_without_spaces(out, length, at, before_name(at, stop));
	}
	strscpy(out + length, ")", MEMSLUICE_SIGNATURE_MAX - length);
}

static bool same_without_spaces(const char *a, const char *b)
{
	for (;;) {
		while (isspace(*a))
			a++;
		while (isspace(*b))
			b++;
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

bool memsluice_signature_matches(const struct memsluice_btf *btf, const char *name,
				 const char *declared, char found[MEMSLUICE_SIGNATURE_MAX])
{
	char wanted[MEMSLUICE_SIGNATURE_MAX];
	bool seen = false;
	u32 id;

	canonical_declaration(declared, wanted);
	for (id = 1; id <= btf->count; id++) {
		const struct btf_type *type = btf->types[id];
		struct text text = { .at = found, .room = MEMSLUICE_SIGNATURE_MAX };

		if (BTF_INFO_KIND(type->info) != BTF_KIND_FUNC ||
		    strcmp(type_name(btf, type), name))
			continue;
		put_prototype(&text, btf, type->type);
		if (!same_without_spaces(found, wanted))
			return false;
		seen = true;
	}
	return seen;
}
