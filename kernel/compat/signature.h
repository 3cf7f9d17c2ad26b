/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_SIGNATURE_H
#define MEMSLUICE_COMPAT_SIGNATURE_H

#include <linux/types.h>

#define MEMSLUICE_SIGNATURE_MAX 320

struct memsluice_btf;

/**
 * memsluice_btf_open() - index the types of a BTF blob (Documentation/bpf/btf.rst)
 * @data: the blob; must outlive the result
 * @length_bytes: its length
 *
 * Every offset is checked against the blob: a broken one gives an error, never a wild access.
 *
 * Return: the index, to be given to memsluice_btf_close(); ERR_PTR(-EINVAL or -ENOMEM).
 */
struct memsluice_btf *memsluice_btf_open(const void *data, size_t length_bytes);
void memsluice_btf_close(struct memsluice_btf *btf);

/**
 * memsluice_signature_matches() - does a function have the type it was declared with?
 * @btf: types of the running kernel
 * @name: the function
 * @declared: C declaration without the name, "int(struct folio *folio, int nid)"; every parameter
 *            has a name, and names are not compared
 * @found: the type the kernel gives it, where one was found
 *
 * Return: true when there is such a function and every function of that name has that type.
 */
bool memsluice_signature_matches(const struct memsluice_btf *btf, const char *name,
				 const char *declared, char found[MEMSLUICE_SIGNATURE_MAX]);

#endif
