// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>

typeof(__pte_offset_map_lock) probe;
