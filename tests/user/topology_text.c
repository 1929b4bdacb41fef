// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * LOCKWORKS_TOPOLOGY with many texts: valid topologies and random mutations of them. The random
 * numbers begin with the same seed in every run.
 */
#include "../runner.h"
#include "topology_text.h"

#define MUTATIONS    40000
#define ENVIRONMENTS 100
#define MOST	     64

static const char *const corpus[] = {
	"0",	       "0:1",	      "0-3,8:4-7",   "0,2,4:1,3,5",	   "0-8191",
	"8191:0",      "00:01:0002",  "0-0:1-1:2-2", "4-7:0-3:12-15:8-11", "100-199,300:200-299",
	"1,0:3,2:5,4", "0-63:64-127",
};

/* Numbers near the greatest CPU number, and greater than the usual types can hold. */
static const char *const numbers[] = {
	"8191", "8192", "65535", "65536", "2147483648", "4294967296", "18446744073709551616",
};

/* A character: mostly one that topologies consist of, sometimes any other. */
static char random_character(void)
{
	static const char usual[] = "0123456789,-:";

	if (random_below(16))
		return usual[random_below(sizeof(usual) - 1)];
	return (char)(1 + random_below(255));
}

/* Changes, removes or inserts one character, or appends a number or another text to a part. */
static void mutate(char text[MOST])
{
	size_t length = strlen(text), at = random_below((uint32_t)length + 1);
	const char *other;

	switch (random_below(5)) {
	case 0:
		if (at < length)
			text[at] = random_character();
		return;
	case 1:
		if (at < length)
			memmove(text + at, text + at + 1, length - at);
		return;
	case 2:
		if (length + 1 < MOST) {
			memmove(text + at + 1, text + at, length - at + 1);
			text[at] = random_character();
		}
		return;
	case 3:
		other = numbers[random_below(sizeof(numbers) / sizeof(*numbers))];
		break;
	default:
		other = corpus[random_below(sizeof(corpus) / sizeof(*corpus))];
	}
	snprintf(text + at, MOST - at, "%c%s", ",:-"[random_below(3)], other);
}

static void make_text(char text[MOST])
{
	snprintf(text, MOST, "%s", corpus[random_below(sizeof(corpus) / sizeof(*corpus))]);
	for (uint32_t changes = random_below(4); changes > 0; changes--)
		mutate(text);
}

static void check_mutations(void)
{
	unsigned int good = 0;

	for (size_t i = 0; i < sizeof(corpus) / sizeof(*corpus); i++)
		CHECK(check_topology_text(corpus[i]));
	for (unsigned int i = 0; i < MUTATIONS; i++) {
		char text[MOST];

		make_text(text);
		good += check_topology_text(text);
	}
	/* Both kinds were among them. */
	CHECK(good > MUTATIONS / 10 && good < MUTATIONS * 9 / 10);
}

/* Starts this program with LOCKWORKS_TOPOLOGY=text; checks what it says on standard error. */
static void check_environment(const char *program, const char *text)
{
	static struct text_topology topology;
	char expected[256] = "", err[1024], variable[MOST + 32];
	char *const environment[] = {variable, NULL};

	snprintf(variable, sizeof(variable), "LOCKWORKS_TOPOLOGY=%s", text);
	if (!split_topology(&topology, text))
		snprintf(expected, sizeof(expected),
			 "lockworks: %s ignored: it must be CPU lists separated by ':', no CPU in "
			 "two of them\n",
			 variable);
	for (char *c = expected; *c && c[1]; c++)
		*c = *c >= ' ' && *c <= '~' ? *c : '?';
	CHECK(run_program(program, environment, err, sizeof(err)) == 0);
	if (strcmp(err, expected) != 0)
		fprintf(stderr, "%s: %s", variable, err);
	CHECK(strcmp(err, expected) == 0);
}

int main(int argc, char **argv)
{
	char program[PATH_MAX] = "";

	(void)argv;
	/* The library has read the environment before main() begins. */
	if (argc > 1)
		return 0;
	check_mutations();
	CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	for (unsigned int i = 0; i < ENVIRONMENTS; i++) {
		char text[MOST];

		make_text(text);
		check_environment(program, text);
	}
	return 0;
}
