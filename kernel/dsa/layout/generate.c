// SPDX-License-Identifier: GPL-2.0
/*
 * generate VMLINUX IDXD: writes a C header with what memsluice_dsa has to know of idxd, whose own
 * headers no distribution ships, and whose structures differ from kernel to kernel. All of it is
 * taken from the BTF of the kernel that the module is built for; what that lacks, or has otherwise
 * than expected, is a reason not to build.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "btf.h"

/* A member as C declares it, and its name. */
struct member {
	const char *declaration;
	const char *name;
};

struct structure {
	const char *name;
	struct member members[16];
};

/* In this order: what contains another comes after it. */
static const struct structure structures[] = {
	{ "idxd_device_driver",
	  {
		  { "const char *name", "name" },
		  { "enum idxd_dev_type *type", "type" },
		  { "int (*probe)(struct idxd_dev *)", "probe" },
		  { "void (*remove)(struct idxd_dev *)", "remove" },
		  { "void (*desc_complete)(struct idxd_desc *, enum idxd_complete_type, bool, void *, u32 *)",
		    "desc_complete" },
		  { "struct device_driver drv", "drv" },
	  } },
	{ "idxd_dev",
	  {
		  { "struct device conf_dev", "conf_dev" },
		  { "enum idxd_dev_type type", "type" },
	  } },
	{ "idxd_driver_data", { { "enum idxd_type type", "type" } } },
	{ "idxd_device",
	  {
		  { "struct idxd_driver_data *data", "data" },
		  { "enum idxd_device_state state", "state" },
		  { "u32 cmd_status", "cmd_status" },
		  { "struct pci_dev *pdev", "pdev" },
	  } },
	{ "idxd_wq",
	  {
		  { "struct percpu_ref wq_active", "wq_active" },
		  { "struct idxd_dev idxd_dev", "idxd_dev" },
		  { "struct idxd_device *idxd", "idxd" },
		  { "enum idxd_wq_type type", "type" },
		  { "struct mutex wq_lock", "wq_lock" },
		  { "unsigned long flags", "flags" },
		  { "int num_descs", "num_descs" },
		  { "u64 max_xfer_bytes", "max_xfer_bytes" },
		  { "u32 max_batch_size", "max_batch_size" },
		  { "char driver_name[MEMSLUICE_IDXD_DRIVER_NAME_BYTES]", "driver_name" },
	  } },
	{ "idxd_desc",
	  {
		  { "struct dsa_hw_desc *hw", "hw" },
		  { "dma_addr_t compl_dma", "compl_dma" },
		  { "struct dsa_completion_record *completion", "completion" },
		  { "int id", "id" },
		  { "struct idxd_wq *wq", "wq" },
	  } },
};

static const struct {
	const char *name;
	const char *values[4];
} enumerations[] = {
	{ "idxd_dev_type", { "IDXD_DEV_NONE", "IDXD_DEV_WQ" } },
	{ "idxd_type", { "IDXD_TYPE_DSA" } },
	{ "idxd_wq_type", { "IDXD_WQT_NONE", "IDXD_WQT_KERNEL" } },
	{ "idxd_op_type", { "IDXD_OP_BLOCK", "IDXD_OP_NONBLOCK" } },
	{ "idxd_complete_type", { "IDXD_COMPLETE_NORMAL", "IDXD_COMPLETE_ABORT" } },
	{ "idxd_device_state", { "IDXD_DEV_ENABLED" } },
	{ "idxd_wq_flag", { "WQ_FLAG_DEDICATED" } },
};

static const struct {
	const char *name;
	const char *signature;
} functions[] = {
	{ "idxd_alloc_desc", "struct idxd_desc* (struct idxd_wq*, enum idxd_op_type)" },
	{ "idxd_free_desc", "void (struct idxd_wq*, struct idxd_desc*)" },
	{ "idxd_submit_desc", "int (struct idxd_wq*, struct idxd_desc*)" },
	{ "idxd_drv_enable_wq", "int (struct idxd_wq*)" },
	{ "idxd_drv_disable_wq", "void (struct idxd_wq*)" },
	{ "__idxd_wq_quiesce", "void (struct idxd_wq*)" },
};

#define COMPLETE_SIGNATURE                                                                         \
	"void (struct idxd_desc*, enum idxd_complete_type, _Bool, void*, unsigned int*)"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint32_t find(const struct btf *btf, const char *name, enum btf_kind kind)
{
	uint32_t type = btf_find(btf, name, kind);

	if (!type)
		give_up("idxd has no %s", name);
	return type;
}

static struct btf_member find_member(const struct btf *btf, const char *structure, const char *name)
{
	struct btf_member member;

	if (!btf_find_member(btf, find(btf, structure, BTF_STRUCT), name, &member))
		give_up("idxd's struct %s has no member %s", structure, name);
	return member;
}

/* The reflected one of IEEE 802.3, as crc32_le() computes it with ~0 before and after. */
static uint32_t crc32(const uint8_t *data, size_t bytes)
{
	uint32_t crc = ~0U;
	int bit;

	while (bytes--) {
		crc ^= *data++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void check_signature(const struct btf *btf, const char *name, uint32_t type,
			    const char *expected)
{
	char found[256];

	btf_signature(btf, type, found, sizeof(found));
	if (strcmp(found, expected))
		give_up("idxd's %s is %s, not %s", name, found, expected);
}

static void write_enumerations(const struct btf *btf)
{
	size_t i, j;

	for (i = 0; i < COUNT(enumerations); i++) {
		uint32_t type = find(btf, enumerations[i].name, BTF_ENUM);
		int64_t value;

		printf("\nenum %s {\n", enumerations[i].name);
		for (j = 0; enumerations[i].values[j]; j++) {
			const char *name = enumerations[i].values[j];

			if (!btf_find_value(btf, type, name, &value))
				give_up("idxd's enum %s has no %s", enumerations[i].name, name);
			printf("\t%s = %" PRId64 ",\n", name, value);
		}
		printf("};\n");
		printf("memsluice_layout_assert(sizeof(enum %s) == %u);\n", enumerations[i].name,
		       btf_size_bytes(btf, type));
	}
}

/* A union lets each member stand where BTF says, whatever lies between. */
static void write_structure(const struct btf *btf, const struct structure *structure)
{
	uint32_t bytes = btf_size_bytes(btf, find(btf, structure->name, BTF_STRUCT));
	const struct member *member;

	printf("\nstruct %s {\n\tunion {\n\t\tunsigned char all[%u];\n", structure->name, bytes);
	for (member = structure->members; member->name; member++) {
		struct btf_member found = find_member(btf, structure->name, member->name);

		if (found.offset_bytes)
			printf("\t\tstruct { unsigned char before_%s[%u]; %s; };\n", member->name,
			       found.offset_bytes, member->declaration);
		else
			printf("\t\tstruct { %s; };\n", member->declaration);
	}
	printf("\t};\n};\nmemsluice_layout_assert(sizeof(struct %s) == %u);\n", structure->name,
	       bytes);
	for (member = structure->members; member->name; member++) {
		struct btf_member found = find_member(btf, structure->name, member->name);

		printf("memsluice_layout_assert(offsetof(struct %s, %s) == %u);\n", structure->name,
		       member->name, found.offset_bytes);
		printf("memsluice_layout_assert(sizeof_field(struct %s, %s) == %u);\n",
		       structure->name, member->name, btf_size_bytes(btf, found.type));
	}
}

int main(int argc, char **argv)
{
	struct btf vmlinux, idxd;
	size_t i;

	if (argc != 3)
		give_up("usage: generate VMLINUX IDXD");
	btf_read(&vmlinux, argv[1], NULL);
	btf_read(&idxd, argv[2], &vmlinux);
	for (i = 0; i < COUNT(functions); i++)
		check_signature(&idxd, functions[i].name,
				find(&idxd, functions[i].name, BTF_FUNCTION),
				functions[i].signature);
	check_signature(&idxd, "desc_complete",
			find_member(&idxd, "idxd_device_driver", "desc_complete").type,
			COMPLETE_SIGNATURE);

	printf("/* Generated from the BTF of idxd: not to be changed. */\n");
	printf("#define MEMSLUICE_IDXD_BTF_BYTES %zu\n", idxd.bytes);
	printf("#define MEMSLUICE_IDXD_BTF_CRC32 0x%08" PRIx32 "U\n", crc32(idxd.data, idxd.bytes));
	printf("#define MEMSLUICE_IDXD_DRIVER_NAME_BYTES %u\n",
	       btf_size_bytes(&idxd, find_member(&idxd, "idxd_wq", "driver_name").type));
	write_enumerations(&idxd);
	for (i = 0; i < COUNT(structures); i++)
		write_structure(&idxd, &structures[i]);
	return 0;
}
