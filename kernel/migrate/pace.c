// SPDX-License-Identifier: GPL-2.0
#include "kernel/migrate/pace.h"

#include <linux/minmax.h>

#define MIB (1ULL << 20)
#define LEAST_NS 1ULL
#define MOST_NS 1000000000ULL

struct memsluice_pace memsluice_pace_initial(void)
{
	return (struct memsluice_pace){ .folio_ns = 20000, .mib_ns = 4000000 };
}

u64 memsluice_pace_ns(const struct memsluice_pace *pace, u64 folios, u64 bytes)
{
	return folios * pace->folio_ns + bytes * pace->mib_ns / MIB;
}

static u64 learn(u64 known, u64 seen)
{
	seen = min(seen, 2 * known + LEAST_NS);
	/* Rounded away from where it is, so that it arrives. */
	known = seen > known ? known + (seen - known + 7) / 8 : known - (known - seen + 7) / 8;
	return clamp(known, LEAST_NS, MOST_NS);
}

struct memsluice_pace memsluice_pace_learn(const struct memsluice_pace *pace,
					   const struct memsluice_pace_sample *sample)
{
	struct memsluice_pace learned = *pace;
	u64 copy_ns = min(sample->copy_ns, sample->total_ns);

	if (sample->bytes)
		learned.mib_ns = learn(pace->mib_ns, copy_ns * MIB / sample->bytes);
	if (sample->folios)
		learned.folio_ns =
			learn(pace->folio_ns, (sample->total_ns - copy_ns) / sample->folios);
	return learned;
}
