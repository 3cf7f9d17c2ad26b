/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_DSA_LAYOUT_BTF_H
#define MEMSLUICE_DSA_LAYOUT_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads types from BTF (Documentation/bpf/btf.rst), on the machine that builds the module. Whatever
 * is wrong ends the program with a message: there is nothing to build then.
 */

struct btf {
	const struct btf *base; /* whose types and strings this one continues, or NULL */
	uint8_t *data; /* the section as it is in the file */
	size_t bytes;
	const uint32_t **types; /* by id - first_type */
	uint32_t first_type, type_count;
	const char *strings;
	uint32_t first_string, string_bytes;
};

/* A member of a structure; those of unnamed members count as its own. */
struct btf_member {
	const char *name;
	uint32_t type;
	uint32_t offset_bytes;
};

enum btf_kind {
	BTF_VOID = 0,
	BTF_INT = 1,
	BTF_POINTER = 2,
	BTF_ARRAY = 3,
	BTF_STRUCT = 4,
	BTF_UNION = 5,
	BTF_ENUM = 6,
	BTF_FORWARD = 7,
	BTF_TYPEDEF = 8,
	BTF_VOLATILE = 9,
	BTF_CONST = 10,
	BTF_RESTRICT = 11,
	BTF_FUNCTION = 12,
	BTF_PROTOTYPE = 13,
	BTF_VARIABLE = 14,
	BTF_SECTION = 15,
	BTF_FLOAT = 16,
	BTF_DECLARATION_TAG = 17,
	BTF_TYPE_TAG = 18,
	BTF_ENUM64 = 19,
};

/* @path: an ELF file with a section .BTF, or such a section. */
void btf_read(struct btf *btf, const char *path, const struct btf *base);

/* Of those that @btf itself brings, not its base. 0: there is none. */
uint32_t btf_find(const struct btf *btf, const char *name, enum btf_kind kind);

uint32_t btf_size_bytes(const struct btf *btf, uint32_t type);
bool btf_find_member(const struct btf *btf, uint32_t type, const char *name,
		     struct btf_member *member);
bool btf_find_value(const struct btf *btf, uint32_t enumeration, const char *name, int64_t *value);

/*
 * The type of a function, as "int (struct a*, unsigned int)", without const and typedefs.
 * @type: a function, its prototype, or a pointer to one.
 */
void btf_signature(const struct btf *btf, uint32_t type, char *text, size_t bytes);

__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *format, ...);

#endif
