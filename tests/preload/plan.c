// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A plan serves the mutexes that it names, and leaves the others to glibc, with condition variables
 * of both. The process writes a plan for this program, with the lock that serves it, and runs the
 * program again with that plan. Under glibc, all mutexes are glibc's.
 */
#include "test.h"

#include <link.h>

#define ROUNDS	1000
#define THREADS 4

static pthread_mutex_t planned = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t planned_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t left_rwlock = PTHREAD_RWLOCK_INITIALIZER;

/* Calls whose places are in the plan. The process that writes it finds out where they return to. */
static int (*init)(pthread_mutex_t *, const pthread_mutexattr_t *) = pthread_mutex_init;
static int (*lock)(pthread_mutex_t *) = pthread_mutex_lock;
static const void *returns_to;

static __attribute__((noinline)) int note_init(pthread_mutex_t *mutex,
					       const pthread_mutexattr_t *attr)
{
	(void)mutex;
	(void)attr;
	returns_to = __builtin_return_address(0);
	return 0;
}

static __attribute__((noinline)) int note_lock(pthread_mutex_t *mutex)
{
	(void)mutex;
	returns_to = __builtin_return_address(0);
	return 0;
}

static __attribute__((noinline)) void init_in_plan(pthread_mutex_t *mutex)
{
	CHECK(init(mutex, NULL) == 0);
}

static __attribute__((noinline)) void lock_in_plan(pthread_mutex_t *mutex)
{
	CHECK(lock(mutex) == 0);
}

/* The program that has a plan */

/* Whether the plan is obeyed. */
static bool obeyed;

/* Checks who serves a mutex that is free. glibc counts the holder among the users of a mutex. */
static void check_server(pthread_mutex_t *mutex, bool is_planned)
{
	GIVES(0, pthread_mutex_lock(mutex));
	CHECK(mutex->__data.__nusers == (is_planned && obeyed ? 0 : 1));
	CHECK(!is_free(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(0, try_and_free(mutex));
}

static int lock_timed(pthread_mutex_t *mutex)
{
	struct timespec soon = from_now(CLOCK_REALTIME, 20);
	int error = pthread_mutex_timedlock(mutex, &soon);

	return error ? error : pthread_mutex_unlock(mutex);
}

static void check_timed(pthread_mutex_t *mutex)
{
	GIVES(0, lock_timed(mutex));
	GIVES(0, pthread_mutex_lock(mutex));
	CHECK(elsewhere(lock_timed, mutex) == ETIMEDOUT);
	GIVES(0, pthread_mutex_unlock(mutex));
}

/* Threads that take turns, with a mutex and two conditions. */
struct turns {
	pthread_mutex_t *mutex;
	pthread_cond_t conds[2];
	unsigned int turn;
};

static void *take_turns(void *arg)
{
	struct turns *turns = arg;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		GIVES(0, pthread_mutex_lock(turns->mutex));
		while (turns->turn % 2 == 0)
			GIVES(0, pthread_cond_wait(&turns->conds[1], turns->mutex));
		turns->turn++;
		GIVES(0, pthread_cond_signal(&turns->conds[0]));
		GIVES(0, pthread_mutex_unlock(turns->mutex));
	}
	return NULL;
}

static void check_turns(struct turns *turns)
{
	pthread_t other = start(take_turns, turns);

	for (unsigned int i = 0; i < ROUNDS; i++) {
		GIVES(0, pthread_mutex_lock(turns->mutex));
		while (turns->turn % 2 == 1)
			GIVES(0, pthread_cond_wait(&turns->conds[0], turns->mutex));
		turns->turn++;
		GIVES(0, pthread_mutex_unlock(turns->mutex));
		GIVES(0, pthread_cond_broadcast(&turns->conds[1]));
	}
	join(other);
	CHECK(turns->turn == 2 * ROUNDS);
}

/* With the conditions of one mutex, then with another mutex, as POSIX allows. */
static void check_conds(pthread_mutex_t *first, pthread_mutex_t *second)
{
	struct turns turns = {first, {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER}, 0};
	struct timespec soon;
	int error = 0;

	check_turns(&turns);
	turns.mutex = second;
	turns.turn = 0;
	check_turns(&turns);
	GIVES(0, pthread_mutex_lock(second));
	soon = from_now(CLOCK_REALTIME, 20);
	/* Such a wait may end early. */
	while (!is_past(CLOCK_REALTIME, soon))
		error = pthread_cond_timedwait(&turns.conds[0], second, &soon);
	CHECK(error == ETIMEDOUT);
	GIVES(0, pthread_mutex_unlock(second));
	GIVES(0, pthread_cond_destroy(&turns.conds[0]));
	GIVES(0, pthread_cond_destroy(&turns.conds[1]));
	GIVES(0, pthread_cond_init(&turns.conds[0], NULL));
	GIVES(0, pthread_cond_signal(&turns.conds[0]));
	GIVES(0, pthread_cond_destroy(&turns.conds[0]));
}

/* What several threads count with a mutex held. */
struct count {
	pthread_mutex_t *mutex;
	unsigned long n;
};

static void *count(void *arg)
{
	struct count *count = arg;

	for (unsigned int i = 0; i < 10 * ROUNDS; i++) {
		GIVES(0, pthread_mutex_lock(count->mutex));
		count->n++;
		GIVES(0, pthread_mutex_unlock(count->mutex));
	}
	return NULL;
}

static void check_excludes(pthread_mutex_t *mutex)
{
	struct count counted = {mutex, 0};
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = start(count, &counted);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	CHECK(counted.n == THREADS * 10ul * ROUNDS);
}

static void check_all(pthread_mutex_t *mutex, bool is_planned)
{
	check_server(mutex, is_planned);
	check_timed(mutex);
	check_excludes(mutex);
	check_conds(mutex, is_planned ? &left : &planned);
}

static void check_in_child(void *arg)
{
	(void)arg;
	check_server(&planned, true);
	check_server(&left, false);
	check_conds(&planned, &left);
	check_conds(&left, &planned);
}

static void check_recursive(void)
{
	for (int i = 0; i < 2; i++)
		GIVES(0, pthread_mutex_lock(&recursive));
	CHECK(recursive.__data.__nusers == !obeyed && recursive.__data.__count == 2);
	CHECK(!is_free(&recursive));
	for (int i = 0; i < 2; i++)
		GIVES(0, pthread_mutex_unlock(&recursive));
	CHECK(is_free(&recursive));
}

static void check_rwlock(pthread_rwlock_t *rwlock)
{
	for (int i = 0; i < 2; i++)
		GIVES(0, pthread_rwlock_rdlock(rwlock));
	GIVES(EBUSY, pthread_rwlock_trywrlock(rwlock));
	for (int i = 0; i < 2; i++)
		GIVES(0, pthread_rwlock_unlock(rwlock));
	GIVES(0, pthread_rwlock_wrlock(rwlock));
	GIVES(EBUSY, pthread_rwlock_tryrdlock(rwlock));
	GIVES(0, pthread_rwlock_unlock(rwlock));
}

static int run_with_plan(void)
{
	pthread_mutex_t *initialised = malloc(sizeof(*initialised));
	pthread_mutex_t *locked = calloc(1, sizeof(*locked));
	pthread_mutex_t robust;
	pthread_mutexattr_t attr;

	CHECK(initialised && locked);
	check_all(&planned, true);
	check_all(&left, false);
	check_recursive();
	init_in_plan(initialised);
	check_all(initialised, true);
	GIVES(0, pthread_mutex_destroy(initialised));
	/* As a new one that others initialise. */
	GIVES(0, pthread_mutex_init(initialised, NULL));
	check_all(initialised, false);
	GIVES(0, pthread_mutex_destroy(initialised));
	lock_in_plan(locked);
	GIVES(0, pthread_mutex_unlock(locked));
	check_all(locked, true);
	GIVES(0, pthread_mutex_destroy(locked));
	CHECK(pthread_mutexattr_init(&attr) == 0);
	CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
	CHECK(pthread_mutex_init(&robust, &attr) == 0);
	lock_in_plan(&robust);
	GIVES(0, pthread_mutex_unlock(&robust));
	check_server(&robust, false);
	check_rwlock(&planned_rwlock);
	check_rwlock(&left_rwlock);
	CHECK(in_child(check_in_child, NULL) == 0);
	free(initialised);
	free(locked);
	return 0;
}

/* The program that writes the plan */

static struct module {
	uintptr_t begin;
	char id[65];
} module;

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	module.begin = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr);
		const char *end = at + segment->p_memsz;

		while (segment->p_type == PT_NOTE && at < end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *name = at + sizeof(*note);
			const char *id = name + ((note->n_namesz + 3) & ~3u);

			if (note->n_type == NT_GNU_BUILD_ID && strcmp(name, "GNU") == 0) {
				for (unsigned int byte = 0; byte < note->n_descsz; byte++)
					sprintf(module.id + (size_t)2 * byte, "%02x",
						(unsigned char)id[byte]);
				return 1;
			}
			at = id + ((note->n_descsz + 3) & ~3u);
		}
	}
	return 1; /* the first module is the executable */
}

static void add_line(FILE *file, const char *lock_name, const char *id, const void *place)
{
	fprintf(file, "%s plan %s %#lx # a comment\n", lock_name, id,
		(unsigned long)((uintptr_t)place - module.begin));
}

/* Runs this program with a plan. Returns whether it ends with 0, and what it says in `err`. */
static bool run(const char *path, bool is_obeyed, char *err, size_t size)
{
	char library[4096], plan[4096];
	char verbose[] = "LOCKWORKS_VERBOSE=1", expected[] = "EXPECTED_LOCK=plan",
	     yes[] = "OBEYED=1";
	char *environment[] = {library, plan, verbose, expected, is_obeyed ? yes : NULL, NULL};

	snprintf(library, sizeof(library), "LD_PRELOAD=%s", getenv("LD_PRELOAD"));
	snprintf(plan, sizeof(plan), "LOCKWORKS_PLAN=%s", path);
	return run_program("/proc/self/exe", environment, err, size) == 0;
}

/* Checks that a plan with this text is not obeyed, and that a line says why. */
static void check_refused(const char *path, const char *text, const char *why)
{
	char err[8192];
	FILE *file = fopen(path, "w");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
	CHECK(run(path, false, err, sizeof(err)));
	if (!strstr(err, why) || !strstr(err, "; glibc serves all locks\n")) {
		fprintf(stderr, "no '%s' in: %s", why, err);
		_exit(1);
	}
}

static void check_plans(const char *name)
{
	char path[] = "/tmp/lockworks-plan-XXXXXX", err[8192], expected[128], text[512];
	int descriptor = mkstemp(path);
	const char *const refused[][2] = {
		{"", "it is no plan"},
		{"lockworks plan 2\n", "of another version"},
		{"lockworks plan 1\n# empty\n", "it names no mutex"},
		{"lockworks plan 1\nmutx plan 00 0x1\n", "line 2 has an unknown lock"},
		{"lockworks plan 1\nmutex plan 00\n", "line 2 is not LOCK MODULE"},
		{"lockworks plan 1\n\nmutex plan 0g 0x1\n", "line 3 has no build-id"},
		{"lockworks plan 1\nmutex plan 00 12\n", "line 2 has no address"},
	};
	const char *at;
	FILE *file;

	CHECK(descriptor >= 0);
	file = fdopen(descriptor, "w");
	CHECK(file);
	dl_iterate_phdr(find_module, NULL);
	CHECK(module.id[0]);
	fprintf(file, "lockworks plan 1\n# The text of a plan\n\n");
	add_line(file, name, module.id, &planned);
	add_line(file, name, module.id, &recursive);
	init = note_init;
	init_in_plan(&left);
	add_line(file, name, module.id, returns_to);
	lock = note_lock;
	lock_in_plan(&left);
	add_line(file, name, module.id, returns_to);
	add_line(file, "rwlock", module.id, &planned_rwlock);
	/* The others of the plan do not wait for this one. */
	fprintf(file, "pv notloaded.so 00 0x1\n");
	CHECK(fclose(file) == 0);
	CHECK(run(path, true, err, sizeof(err)));
	for (unsigned int line = 4; line <= 9; line++) {
		snprintf(expected, sizeof(expected), "line %u of the plan in process ", line);
		at = strstr(err, expected);
		snprintf(expected, sizeof(expected), ": locks that '%s' serves: %u\n",
			 line == 9   ? "pv"
			 : line == 8 ? "rwlock"
				     : name,
			 line == 9 ? 0 : 1);
		CHECK(at && strncmp(at + strcspn(at, ":"), expected, strlen(expected)) == 0);
	}

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		check_refused(path, refused[i][0], refused[i][1]);
	module.id[0] = module.id[0] == '0' ? '1' : '0';
	snprintf(text, sizeof(text), "lockworks plan 1\nmutex plan %s %#lx\n", module.id,
		 (unsigned long)((uintptr_t)&planned - module.begin));
	check_refused(path, text, "line 2 is for another build of plan, by its build-id");
	unlink(path);
	CHECK(run(path, false, err, sizeof(err)) && strstr(err, "No such file"));
}

int main(int argc, char **argv)
{
	(void)argv;
	begin();
	obeyed = getenv("OBEYED");
	if (argc > 1 || !expected_lock())
		return run_with_plan();
	check_plans(expected_lock());
	return 0;
}
