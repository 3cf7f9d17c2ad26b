// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/compat/symbols.h"

#include <linux/kallsyms.h>
#include <linux/kprobes.h>

#include "kernel/compat/signature.h"

#define MEMSLUICE_DEFINE(features, ret, name, args, fail)                                          \
	ret memsluice_stub_##name args                                                             \
	{                                                                                          \
		WARN_ONCE(1, "memsluice: " #name " called, but not bound\n");                      \
		return fail;                                                                       \
	}                                                                                          \
	DEFINE_STATIC_CALL(memsluice_##name, memsluice_stub_##name);                               \
	static void memsluice_bind_##name(void *address)                                           \
	{                                                                                          \
		static_call_update(memsluice_##name, address);                                     \
	}
MEMSLUICE_SYMBOLS(MEMSLUICE_DEFINE)

/* Through a second macro, so that what stands for a type is replaced before it becomes text. */
#define MEMSLUICE_ROW(features, ret, name, args, fail)                                             \
	MEMSLUICE_EXPANDED_ROW(features, ret, name, args)
#define MEMSLUICE_EXPANDED_ROW(features_, ret, name_, args)                                        \
	{                                                                                          \
		.name = #name_,                                                                    \
		.declared = #ret #args,                                                            \
		.features = features_,                                                             \
		.bind = memsluice_bind_##name_,                                                    \
	},
static struct memsluice_symbol memsluice_symbols[] = { MEMSLUICE_SYMBOLS(MEMSLUICE_ROW) };

typedef unsigned long (*lookup_name_t)(const char *name);

/*
 * kallsyms_lookup_name() has not been exported since 5.7, but a kprobe may be set on it by name.
 * The probe may sit behind the function's ENDBR, so the offset is taken off.
 */
static unsigned long lookup_name_address(void)
{
	/* Disabled: only its address is wanted, and the kernel's text stays as it is. */
	struct kprobe probe = {
		.symbol_name = "kallsyms_lookup_name",
		.flags = KPROBE_FLAG_DISABLED,
	};
	unsigned long address, offset = 0;
	char text[KSYM_SYMBOL_LEN];
	char *plus;
	int err;

	err = register_kprobe(&probe);
	if (err) {
		pr_err("cannot resolve symbols: a kprobe on kallsyms_lookup_name fails with %d\n",
		       err);
		return 0;
	}
	address = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	sprint_symbol(text, address);

	plus = strchr(text, '+');
	if (plus) {
		*strchrnul(plus, '/') = '\0';
		if (kstrtoul(plus + 1, 16, &offset))
			return 0;
	}
	return address - offset;
}

/* Its own static call, for the same reason as all others: the function is sealed under IBT. */
static unsigned long lookup_nothing(const char *name)
{
	return 0;
}
DEFINE_STATIC_CALL(memsluice_lookup_name, lookup_nothing);

static void report(const struct memsluice_symbol *symbol, const char *found)
{
	switch (symbol->state) {
	case MEMSLUICE_SYMBOL_MISSING:
		pr_warn("%s: this kernel does not have it\n", symbol->name);
		break;
	case MEMSLUICE_SYMBOL_MISMATCH:
		pr_warn("%s: this kernel has %s, the module was built for %s\n", symbol->name,
			found, symbol->declared);
		break;
	default:
		break;
	}
}

static void compare(struct memsluice_symbol *symbol, const struct memsluice_btf *btf)
{
	char found[MEMSLUICE_SIGNATURE_MAX] = "no such function in its BTF";

	if (!symbol->address)
		symbol->state = MEMSLUICE_SYMBOL_MISSING;
	else if (!btf)
		symbol->state = MEMSLUICE_SYMBOL_UNCHECKED;
	else if (memsluice_signature_matches(btf, symbol->name, symbol->declared, found))
		symbol->state = MEMSLUICE_SYMBOL_BOUND;
	else
		symbol->state = MEMSLUICE_SYMBOL_MISMATCH;
	report(symbol, found);
}

static bool usable(const struct memsluice_symbol *symbol)
{
	return symbol->state == MEMSLUICE_SYMBOL_BOUND ||
	       symbol->state == MEMSLUICE_SYMBOL_UNCHECKED;
}

int memsluice_symbols_bind(bool allow_unchecked)
{
	unsigned long address = lookup_name_address();
	const void *start, *stop;
	struct memsluice_btf *btf;
	unsigned int i;

	if (!address)
		return -ENOENT;
	static_call_update(memsluice_lookup_name, (lookup_name_t)address);

	start = (const void *)static_call(memsluice_lookup_name)("__start_BTF");
	stop = (const void *)static_call(memsluice_lookup_name)("__stop_BTF");
	btf = start && stop > start ? memsluice_btf_open(start, stop - start) : NULL;
	if (IS_ERR(btf)) {
		pr_err("the kernel's BTF cannot be read: %ld\n", PTR_ERR(btf));
		btf = NULL;
	}
	if (!btf && !allow_unchecked) {
		pr_err("no BTF to check the kernel's functions with; to load all the same, at your own risk: allow_unchecked=1\n");
		return -ENOEXEC;
	}

	for (i = 0; i < ARRAY_SIZE(memsluice_symbols); i++) {
		struct memsluice_symbol *symbol = &memsluice_symbols[i];

		symbol->address = (void *)static_call(memsluice_lookup_name)(symbol->name);
		compare(symbol, btf);
		if (usable(symbol))
			symbol->bind(symbol->address);
	}
	memsluice_btf_close(btf);
	return 0;
}

u64 memsluice_symbols_features(u64 wanted)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(memsluice_symbols); i++) {
		if (!usable(&memsluice_symbols[i]))
			wanted &= ~memsluice_symbols[i].features;
	}
	return wanted;
}

unsigned long memsluice_data_address(const char *name)
{
	return static_call(memsluice_lookup_name)(name);
}

void *memsluice_symbol_address(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(memsluice_symbols); i++) {
		if (!strcmp(memsluice_symbols[i].name, name))
			return usable(&memsluice_symbols[i]) ? memsluice_symbols[i].address : NULL;
	}
	return NULL;
}

bool memsluice_symbol_bound(const char *name)
{
	return memsluice_symbol_address(name);
}

const struct memsluice_symbol *memsluice_symbol_table(unsigned int *count)
{
	*count = ARRAY_SIZE(memsluice_symbols);
	return memsluice_symbols;
}

const char *memsluice_symbol_state_name(enum memsluice_symbol_state state)
{
	switch (state) {
	case MEMSLUICE_SYMBOL_MISSING:
		return "missing";
	case MEMSLUICE_SYMBOL_MISMATCH:
		return "mismatch";
	case MEMSLUICE_SYMBOL_UNCHECKED:
		return "unchecked";
	case MEMSLUICE_SYMBOL_BOUND:
		return "bound";
	}
	return "unknown";
}
