// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Reads a plan, and finds its places in the modules of this process. A line is for a build of a
 * module: its address is that in the file, so the place in memory is known once the module is
 * loaded. If a module of this name has another build-id, nothing of the plan is obeyed.
 *
 * A line whose module is not loaded waits for it. Then each mutex that no line names asks the
 * loader whether it has loaded something since. A module that was unloaded leaves its places
 * behind: if another one is loaded there, a mutex may get a lock that nobody planned for it, which
 * is as correct as any.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lockworks/lockworks.h>

#include "choice.h"
#include "plan.h"
#include "settings.h"

#define LW_PLAN_HEAD  "lockworks plan "
#define LW_PLAN_BYTES 65536
#define LW_PLAN_LINES 256
#define LW_ID_BYTES   32

struct lw_build_id {
	unsigned int size;
	unsigned char bytes[LW_ID_BYTES];
};

struct lw_plan_line {
	const char *module;
	struct lw_build_id id;
	uintptr_t offset; /* the address in the file */
	int lock;	  /* the number in lw_lock_types; -1: glibc */
	unsigned int number;
	bool other_build; /* a module of this name has another build-id */
	lw_atomic(uint64_t) served;
};

static struct lw_plan {
	struct lw_mutex lock; /* protects all but atomics */
	bool read;
	char path[256]; /* for messages */
	char text[LW_PLAN_BYTES];
	char executable[256]; /* its file name */
	unsigned long long loaded;
	struct lw_plan_line lines[LW_PLAN_LINES];
	/* The number of lines that are obeyed. */
	lw_atomic(unsigned int) count;
	/* Lines whose modules are not loaded. */
	lw_atomic(unsigned int) missing;
	/* Where the places of the lines are in memory; 0: not known */
	lw_atomic(uintptr_t) places[LW_PLAN_LINES];
} lw_plan;

static void lw_plan_refuse(const char *why)
{
	char full[600];

	lw_store(&lw_plan.count, 0, relaxed);
	lw_store(&lw_plan.missing, 0, relaxed);
	snprintf(full, sizeof(full), "%s; glibc serves all locks", why);
	lw_user_report_ignored("LOCKWORKS_PLAN", lw_plan.path, full);
}

/* The file */

/* Reads the file into lw_plan.text. Returns false, with errno, if it cannot. */
static bool lw_plan_load(const char *path)
{
	int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	size_t length = 0;
	long got;

	if (file < 0)
		return false;
	do {
		got = syscall(SYS_read, file, lw_plan.text + length, LW_PLAN_BYTES - length);
		length += got > 0 ? (size_t)got : 0;
	} while ((got > 0 && length < LW_PLAN_BYTES) || (got < 0 && errno == EINTR));
	syscall(SYS_close, file);
	if (length == LW_PLAN_BYTES)
		errno = EFBIG;
	return got >= 0 && length < LW_PLAN_BYTES;
}

static bool lw_plan_hex(const char *text, struct lw_build_id *id)
{
	size_t digits = strlen(text);

	id->size = (unsigned int)(digits / 2);
	if (!digits || digits % 2 || id->size > LW_ID_BYTES)
		return false;
	for (unsigned int i = 0; i < id->size; i++) {
		const char pair[] = {text[2 * i], text[2 * i + 1], '\0'};

		if (!isxdigit((unsigned char)pair[0]) || !isxdigit((unsigned char)pair[1]))
			return false;
		id->bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
	}
	return true;
}

/* Finds a lock that a plan may name. Returns its number; -1: glibc; -2: there is none. */
static int lw_plan_lock(const char *name)
{
	if (strcmp(name, "glibc") == 0)
		return -1;
	for (int i = 0; lw_lock_types[i]; i++) {
		const struct lw_lock_type *type = lw_lock_types[i];

		if (strcmp(type->name, name) == 0 && (!lw_unfit(type) || type->read_lock))
			return i;
	}
	return -2;
}

/* Reads a line without its comment. Returns what is wrong with it; NULL: nothing. */
static const char *lw_plan_parse(char *text, unsigned int number)
{
	char *rest = text, *words[5] = {NULL}, *end;
	unsigned int count = lw_load(&lw_plan.count, relaxed), n = 0;
	struct lw_plan_line *line = &lw_plan.lines[count];

	while (n < 5 && (words[n] = strtok_r(rest, " \t\r", &rest)))
		n++;
	if (n == 0)
		return NULL;
	if (count == LW_PLAN_LINES)
		return "is one too many";
	if (n != 4)
		return "is not LOCK MODULE BUILD-ID ADDRESS";
	line->lock = lw_plan_lock(words[0]);
	if (line->lock < -1)
		return "has an unknown lock";
	line->module = words[1];
	if (!lw_plan_hex(words[2], &line->id))
		return "has no build-id of hexadecimal digits";
	line->offset = strtoul(words[3], &end, 16);
	if (strncmp(words[3], "0x", 2) != 0 || end == words[3] + 2 || *end)
		return "has no address that begins with 0x";
	line->number = number;
	lw_store(&lw_plan.count, count + 1, relaxed);
	return NULL;
}

static void lw_plan_parse_all(void)
{
	char *next = lw_plan.text, why[128];
	unsigned int number = 0;

	if (strncmp(next, LW_PLAN_HEAD, strlen(LW_PLAN_HEAD)) != 0) {
		lw_plan_refuse("it is no plan; the first line of a plan is '" LW_PLAN_HEAD "1'");
		return;
	}
	if (strcspn(next, "\r\n") != strlen(LW_PLAN_HEAD "1") ||
	    next[strlen(LW_PLAN_HEAD)] != '1') {
		lw_plan_refuse("it is a plan of another version; this library reads version 1");
		return;
	}
	while (next) {
		char *text = strsep(&next, "\n");
		const char *wrong;

		text[strcspn(text, "#")] = '\0';
		wrong = number++ ? lw_plan_parse(text, number) : NULL;
		if (wrong) {
			snprintf(why, sizeof(why), "line %u %s", number, wrong);
			lw_plan_refuse(why);
			return;
		}
	}
	if (!lw_load(&lw_plan.count, relaxed))
		lw_plan_refuse("it names no mutex");
}

/* The modules */

static bool lw_same_id(const struct lw_build_id *a, const struct lw_build_id *b)
{
	return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* Returns whether the loader has mapped these bytes of the module. */
static bool lw_is_mapped(const struct dl_phdr_info *info, uintptr_t address, size_t size)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_R &&
		    address >= segment->p_vaddr && size <= segment->p_memsz &&
		    address - segment->p_vaddr <= segment->p_memsz - size)
			return true;
	}
	return false;
}

/* The build-id of a module; of size 0 if it has none. */
static struct lw_build_id lw_id_of(const struct dl_phdr_info *info)
{
	struct lw_build_id id = {0};

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *notes = (const char *)(info->dlpi_addr + segment->p_vaddr);
		const size_t mask = segment->p_align == 8 ? 7 : 3;
		size_t at = 0;

		if (segment->p_type != PT_NOTE ||
		    !lw_is_mapped(info, segment->p_vaddr, segment->p_memsz))
			continue;
		while (segment->p_memsz - at >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)(notes + at);
			size_t left = segment->p_memsz - at - sizeof(*note);
			size_t name = ((size_t)note->n_namesz + 3) & ~(size_t)3;
			size_t whole = (sizeof(*note) + name + note->n_descsz + mask) & ~mask;

			if (name > left || note->n_descsz > left - name)
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    memcmp(note + 1, "GNU", 4) == 0 && note->n_descsz <= LW_ID_BYTES) {
				id.size = note->n_descsz;
				memcpy(id.bytes, (const char *)(note + 1) + name, id.size);
				return id;
			}
			if (whole >= segment->p_memsz - at)
				break;
			at += whole;
		}
	}
	return id;
}

static int lw_plan_place(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;
	struct lw_build_id id;
	bool *anew = arg;

	(void)size;
	if (*anew) {
		if (info->dlpi_adds == lw_plan.loaded)
			return 1;
		lw_plan.loaded = info->dlpi_adds;
		*anew = false;
	}
	if (!*name)
		name = lw_plan.executable;
	id = lw_id_of(info);
	for (unsigned int i = 0; i < lw_load(&lw_plan.count, relaxed); i++) {
		struct lw_plan_line *line = &lw_plan.lines[i];

		if (lw_load(&lw_plan.places[i], relaxed))
			continue;
		if (lw_same_id(&id, &line->id))
			lw_store(&lw_plan.places[i], info->dlpi_addr + line->offset, relaxed);
		else if (strcmp(name, line->module) == 0)
			line->other_build = true;
	}
	return 0;
}

/* Finds the lines whose modules have been loaded. */
static void lw_plan_place_all(void)
{
	unsigned int missing = 0, count = lw_load(&lw_plan.count, relaxed);
	char why[384], module[256];
	bool anew = true;

	dl_iterate_phdr(lw_plan_place, &anew);
	for (unsigned int i = 0; i < count; i++) {
		const struct lw_plan_line *line = &lw_plan.lines[i];

		if (lw_load(&lw_plan.places[i], relaxed))
			continue;
		missing++;
		if (line->other_build) {
			lw_user_printable(module, sizeof(module), line->module);
			snprintf(why, sizeof(why),
				 "line %u is for another build of %s, by its build-id; make the "
				 "plan again",
				 line->number, module);
			lw_plan_refuse(why);
			return;
		}
	}
	lw_store(&lw_plan.missing, missing, relaxed);
}

static void lw_plan_name_executable(void)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *slash;

	path[length > 0 ? length : 0] = '\0';
	slash = strrchr(path, '/');
	snprintf(lw_plan.executable, sizeof(lw_plan.executable), "%.255s",
		 slash ? slash + 1 : path);
}

void lw_plan_read(const char *path)
{
	int saved = errno;

	lw_mutex_lock(&lw_plan.lock);
	if (!lw_plan.read) {
		lw_plan.read = true;
		lw_user_printable(lw_plan.path, sizeof(lw_plan.path), path);
		if (lw_plan_load(path))
			lw_plan_parse_all();
		else
			lw_plan_refuse(strerrordesc_np(errno));
		lw_plan_name_executable();
		if (lw_load(&lw_plan.count, relaxed))
			lw_plan_place_all();
	}
	lw_mutex_unlock(&lw_plan.lock);
	errno = saved;
}

/* Mutexes */

/* Returns the line for an address; NULL if there is none. */
static struct lw_plan_line *lw_plan_line_at(uintptr_t address)
{
	unsigned int count = lw_load(&lw_plan.count, relaxed);

	for (unsigned int i = 0; i < count; i++) {
		if (lw_load(&lw_plan.places[i], relaxed) == address)
			return &lw_plan.lines[i];
	}
	return NULL;
}

static void lw_plan_fork_child(void)
{
	memset(&lw_plan.lock, 0, sizeof(lw_plan.lock));
}

__attribute__((constructor(101))) static void lw_plan_start(void)
{
	pthread_atfork(NULL, NULL, lw_plan_fork_child);
}

enum lw_planned lw_plan_find(const void *address, const void *caller, bool has_readers,
			     unsigned int *lock)
{
	struct lw_plan_line *line =
		lw_plan_line_at((uintptr_t)address) ?: lw_plan_line_at((uintptr_t)caller);

	if (!line && lw_load(&lw_plan.missing, relaxed)) {
		int saved = errno;

		lw_mutex_lock(&lw_plan.lock);
		lw_plan_place_all();
		lw_mutex_unlock(&lw_plan.lock);
		errno = saved;
		line = lw_plan_line_at((uintptr_t)address) ?: lw_plan_line_at((uintptr_t)caller);
	}
	if (!line)
		return LW_PLANNED_NOT;
	if (line->lock < 0 || !lw_lock_types[line->lock]->read_lock == has_readers)
		return LW_PLANNED_GLIBC;
	lw_fetch_add(&line->served, 1, relaxed);
	*lock = (unsigned int)line->lock;
	return LW_PLANNED_LOCK;
}

void lw_plan_report(void)
{
	unsigned int count = lw_load(&lw_plan.count, relaxed);

	for (unsigned int i = 0; i < count; i++) {
		const struct lw_plan_line *line = &lw_plan.lines[i];

		if (line->lock >= 0)
			lw_user_write_line(
				"lockworks: line %u of the plan in process %d: locks that '%s' "
				"serves: %" PRIu64 "\n",
				line->number, (int)getpid(), lw_lock_types[line->lock]->name,
				lw_load(&line->served, relaxed));
	}
}
