// SPDX-License-Identifier: GPL-2.0
/*
 * The instruction MOVDIR64B, for emulated CPUs that lack it: idxd submits with it, and does not load
 * without. Only for tests. It is not one store of 64 bytes here, but eight of 8.
 */
#include <linux/io.h>
#include <linux/kdebug.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include <asm/cpufeature.h>
#include <asm/trapnr.h>

#define OPCODE_MAX 11 /* a prefix, REX, three bytes, ModRM, four of displacement, one to spare */

/* The CPUs take turns, so that the parts of two descriptors never mix. */
static DEFINE_RAW_SPINLOCK(store_lock);
static bool feature_is_ours;

static u64 *register_of(struct pt_regs *regs, int number)
{
	unsigned long *registers[] = {
		&regs->ax,  &regs->cx,	&regs->dx,  &regs->bx,	&regs->sp,  &regs->bp,
		&regs->si,  &regs->di,	&regs->r8,  &regs->r9,	&regs->r10, &regs->r11,
		&regs->r12, &regs->r13, &regs->r14, &regs->r15,
	};

	return (u64 *)registers[number];
}

/* Return: the length of the instruction, or 0 for one that is another or is addressed otherwise. */
static int decode(const u8 *code, struct pt_regs *regs, u64 *source, u64 *destination)
{
	int at = 0, mode, base, displacement = 0;
	u8 rex = 0, modrm;

	if (code[at++] != 0x66)
		return 0;
	if ((code[at] & 0xf0) == 0x40)
		rex = code[at++];
	if (code[at] != 0x0f || code[at + 1] != 0x38 || code[at + 2] != 0xf8)
		return 0;
	at += 3;
	modrm = code[at++];
	mode = modrm >> 6;
	base = modrm & 7;
	if (mode == 3 || base == 4 || (mode == 0 && base == 5))
		return 0;
	if (mode == 1)
		displacement = (s8)code[at++];
	if (mode == 2) {
		memcpy(&displacement, code + at, sizeof(displacement));
		at += sizeof(displacement);
	}
	*source = *register_of(regs, base | (rex & 1) << 3) + displacement;
	*destination = *register_of(regs, (modrm >> 3 & 7) | (rex & 4) << 1);
	return at;
}

static int invalid_opcode(struct notifier_block *unused, unsigned long event, void *data)
{
	struct die_args *trap = data;
	struct pt_regs *regs = trap->regs;
	u64 source, destination, parts[8];
	u8 code[OPCODE_MAX];
	unsigned long flags;
	int length, i;

	if (event != DIE_TRAP || trap->trapnr != X86_TRAP_UD || user_mode(regs) ||
	    copy_from_kernel_nofault(code, (void *)regs->ip, sizeof(code)))
		return NOTIFY_DONE;
	length = decode(code, regs, &source, &destination);
	if (!length || copy_from_kernel_nofault(parts, (void *)source, sizeof(parts)))
		return NOTIFY_DONE;
	raw_spin_lock_irqsave(&store_lock, flags);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		__raw_writeq(parts[i], (void __iomem *)(destination + i * sizeof(parts[0])));
	raw_spin_unlock_irqrestore(&store_lock, flags);
	regs->ip += length;
	return NOTIFY_STOP;
}

static struct notifier_block notifier = { .notifier_call = invalid_opcode, .priority = INT_MAX };

static int __init shim_init(void)
{
	feature_is_ours = !boot_cpu_has(X86_FEATURE_MOVDIR64B);
	if (feature_is_ours)
		set_cpu_cap(&boot_cpu_data, X86_FEATURE_MOVDIR64B);
	return register_die_notifier(&notifier);
}

static void __exit shim_exit(void)
{
	unregister_die_notifier(&notifier);
	if (feature_is_ours)
		clear_bit(X86_FEATURE_MOVDIR64B, (unsigned long *)boot_cpu_data.x86_capability);
}

module_init(shim_init);
module_exit(shim_exit);
MODULE_DESCRIPTION("memsluice: MOVDIR64B for CPUs that lack it");
MODULE_LICENSE("GPL");
