/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_STRING_H
#define SHIM_LINUX_STRING_H

#include <errno.h>
#include <string.h>
#include <sys/types.h>

/* As lib/string.c has it: always terminated; -E2BIG when it was cut. */
static inline ssize_t strscpy(char *to, const char *from, size_t room)
{
	size_t length = strnlen(from, room);

	if (!room)
		return -E2BIG;
	if (length < room) {
		memcpy(to, from, length + 1);
		return (ssize_t)length;
	}
	memcpy(to, from, room - 1);
	to[room - 1] = '\0';
	return -E2BIG;
}

#endif
