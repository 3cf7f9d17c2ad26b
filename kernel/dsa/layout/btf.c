// SPDX-License-Identifier: GPL-2.0
#include "btf.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0xeb9f
#define HEADER_WORDS 6
#define TYPE_WORDS 3 /* name, info, size or type */

void give_up(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

static uint8_t *read_file(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	size_t capacity = 1 << 20, got;
	uint8_t *data = NULL;

	if (!file)
		give_up("%s: %s", path, strerror(errno));
	*bytes = 0;
	do {
		capacity *= 2;
		data = realloc(data, capacity);
		if (!data)
			give_up("%s: no memory", path);
		got = fread(data + *bytes, 1, capacity - *bytes, file);
		*bytes += got;
	} while (*bytes == capacity);
	if (ferror(file))
		give_up("%s: %s", path, strerror(errno));
	fclose(file);
	return data;
}

static bool fits(size_t offset, size_t bytes, size_t all)
{
	return offset <= all && bytes <= all - offset;
}

/* Leaves of the file only its section .BTF. */
static void keep_section(struct btf *btf, const char *path)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)btf->data;
	const Elf64_Shdr *sections, *names;
	unsigned int i;

	if (btf->bytes < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG))
		return;
	if (header->e_shstrndx >= header->e_shnum ||
	    !fits(header->e_shoff, header->e_shnum * sizeof(*sections), btf->bytes))
		give_up("%s: a broken ELF file", path);
	sections = (const Elf64_Shdr *)(btf->data + header->e_shoff);
	names = &sections[header->e_shstrndx];
	for (i = 0; i < header->e_shnum; i++) {
		size_t name = names->sh_offset + sections[i].sh_name;

		if (!fits(name, sizeof(".BTF"), btf->bytes) ||
		    memcmp(btf->data + name, ".BTF", sizeof(".BTF")))
			continue;
		if (!fits(sections[i].sh_offset, sections[i].sh_size, btf->bytes))
			give_up("%s: a broken ELF file", path);
		btf->bytes = sections[i].sh_size;
		memmove(btf->data, btf->data + sections[i].sh_offset, btf->bytes);
		return;
	}
	give_up("%s: no BTF", path);
}

static enum btf_kind kind_of(const uint32_t *type)
{
	return type[1] >> 24 & 31;
}

static uint32_t count_of(const uint32_t *type)
{
	return type[1] & 0xffff;
}

/* What follows the three words that each type has. */
static uint32_t more_words(const uint32_t *type)
{
	switch (kind_of(type)) {
	case BTF_INT:
	case BTF_VARIABLE:
	case BTF_DECLARATION_TAG:
		return 1;
	case BTF_ARRAY:
		return 3;
	case BTF_STRUCT:
	case BTF_UNION:
	case BTF_SECTION:
	case BTF_ENUM64:
		return 3 * count_of(type);
	case BTF_ENUM:
	case BTF_PROTOTYPE:
		return 2 * count_of(type);
	default:
		return 0;
	}
}

static void index_types(struct btf *btf, const char *path, const uint32_t *at, uint32_t bytes)
{
	const uint32_t *end = at + bytes / sizeof(*at);
	uint32_t capacity = 0;

	while (at < end) {
		if (btf->type_count == capacity) {
			capacity = 2 * capacity + 1024;
			btf->types = realloc(btf->types, capacity * sizeof(*btf->types));
			if (!btf->types)
				give_up("%s: no memory", path);
		}
		if ((size_t)(end - at) < TYPE_WORDS ||
		    (size_t)(end - at) < TYPE_WORDS + more_words(at))
			give_up("%s: broken BTF", path);
		btf->types[btf->type_count++] = at;
		at += TYPE_WORDS + more_words(at);
	}
}

void btf_read(struct btf *btf, const char *path, const struct btf *base)
{
	const uint32_t *header;
	uint32_t header_bytes;

	memset(btf, 0, sizeof(*btf));
	btf->base = base;
	btf->first_type = base ? base->first_type + base->type_count : 1;
	btf->first_string = base ? base->first_string + base->string_bytes : 0;
	btf->data = read_file(path, &btf->bytes);
	keep_section(btf, path);

	header = (const uint32_t *)btf->data;
	if (btf->bytes < HEADER_WORDS * sizeof(*header) || (header[0] & 0xffff) != MAGIC)
		give_up("%s: no BTF", path);
	/* Header: magic and version, its size, types at, bytes of types, strings at, their bytes. */
	header_bytes = header[1];
	if (header[2] % sizeof(*header) || header_bytes % sizeof(*header) ||
	    !fits((size_t)header_bytes + header[2], header[3], btf->bytes) ||
	    !fits((size_t)header_bytes + header[4], header[5], btf->bytes) || !header[5] ||
	    btf->data[header_bytes + header[4] + header[5] - 1])
		give_up("%s: broken BTF", path);
	btf->strings = (const char *)btf->data + header_bytes + header[4];
	btf->string_bytes = header[5];
	index_types(btf, path, (const uint32_t *)(btf->data + header_bytes + header[2]), header[3]);
}

static const char *string_at(const struct btf *btf, uint32_t offset)
{
	while (btf->base && offset < btf->first_string)
		btf = btf->base;
	if (offset - btf->first_string >= btf->string_bytes)
		give_up("broken BTF: string %u", offset);
	return btf->strings + (offset - btf->first_string);
}

/* NULL: void. */
static const uint32_t *type_at(const struct btf *btf, uint32_t id)
{
	if (!id)
		return NULL;
	while (btf->base && id < btf->first_type)
		btf = btf->base;
	if (id - btf->first_type >= btf->type_count)
		give_up("broken BTF: type %u", id);
	return btf->types[id - btf->first_type];
}

uint32_t btf_find(const struct btf *btf, const char *name, enum btf_kind kind)
{
	uint32_t i;

	for (i = 0; i < btf->type_count; i++) {
		if (kind_of(btf->types[i]) == kind &&
		    !strcmp(string_at(btf, btf->types[i][0]), name))
			return btf->first_type + i;
	}
	return 0;
}

static uint32_t skip_names(const struct btf *btf, uint32_t id)
{
	const uint32_t *type;

	while ((type = type_at(btf, id))) {
		switch (kind_of(type)) {
		case BTF_TYPEDEF:
		case BTF_VOLATILE:
		case BTF_CONST:
		case BTF_RESTRICT:
		case BTF_TYPE_TAG:
			id = type[2];
			continue;
		default:
			return id;
		}
	}
	return 0;
}

uint32_t btf_size_bytes(const struct btf *btf, uint32_t id)
{
	const uint32_t *type = type_at(btf, skip_names(btf, id));

	if (!type)
		return 0;
	switch (kind_of(type)) {
	case BTF_POINTER:
		return sizeof(uint64_t);
	case BTF_ARRAY:
		return type[5] * btf_size_bytes(btf, type[3]);
	default:
		return type[2];
	}
}

bool btf_find_member(const struct btf *btf, uint32_t id, const char *name,
		     struct btf_member *member)
{
	const uint32_t *type = type_at(btf, id);
	uint32_t i;

	for (i = 0; i < count_of(type); i++) {
		const uint32_t *at = type + TYPE_WORDS + 3 * i;
		bool with_sizes = type[1] >> 31; /* of bit fields, in the upper byte */
		uint32_t bits = with_sizes ? at[2] & 0xffffff : at[2];
		const char *its_name = string_at(btf, at[0]);

		if (!*its_name) {
			if (btf_find_member(btf, skip_names(btf, at[1]), name, member)) {
				member->offset_bytes += bits / 8;
				return true;
			}
			continue;
		}
		if (strcmp(its_name, name))
			continue;
		if (bits % 8 || (with_sizes && at[2] >> 24))
			give_up("%s is a bit field", name);
		*member = (struct btf_member){
			.name = its_name,
			.type = at[1],
			.offset_bytes = bits / 8,
		};
		return true;
	}
	return false;
}

bool btf_find_value(const struct btf *btf, uint32_t enumeration, const char *name, int64_t *value)
{
	const uint32_t *type = type_at(btf, enumeration);
	bool is_signed = type[1] >> 31;
	uint32_t i;

	for (i = 0; i < count_of(type); i++) {
		const uint32_t *at = type + TYPE_WORDS + 2 * i;

		if (strcmp(string_at(btf, at[0]), name))
			continue;
		*value = is_signed ? (int32_t)at[1] : (int64_t)at[1];
		return true;
	}
	return false;
}

static void append(char *text, size_t bytes, const char *more)
{
	size_t length = strlen(text);

	snprintf(text + length, bytes - length, "%s", more);
}

static void append_type(const struct btf *btf, uint32_t id, char *text, size_t bytes)
{
	const uint32_t *type = type_at(btf, skip_names(btf, id));

	if (!type) {
		append(text, bytes, "void");
		return;
	}
	switch (kind_of(type)) {
	case BTF_POINTER:
		append_type(btf, type[2], text, bytes);
		append(text, bytes, "*");
		return;
	case BTF_STRUCT:
		append(text, bytes, "struct ");
		break;
	case BTF_UNION:
		append(text, bytes, "union ");
		break;
	case BTF_ENUM:
		append(text, bytes, "enum ");
		break;
	default:
		break;
	}
	append(text, bytes, string_at(btf, type[0]));
}

void btf_signature(const struct btf *btf, uint32_t id, char *text, size_t bytes)
{
	const uint32_t *type = type_at(btf, skip_names(btf, id));
	uint32_t i;

	*text = '\0';
	while (type && (kind_of(type) == BTF_FUNCTION || kind_of(type) == BTF_POINTER))
		type = type_at(btf, skip_names(btf, type[2]));
	if (!type || kind_of(type) != BTF_PROTOTYPE)
		return;
	append_type(btf, type[2], text, bytes);
	append(text, bytes, " (");
	for (i = 0; i < count_of(type); i++) {
		append(text, bytes, i ? ", " : "");
		append_type(btf, type[TYPE_WORDS + 2 * i + 1], text, bytes);
	}
	append(text, bytes, ")");
}
