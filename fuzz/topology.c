// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* A fuzz target for the parser of LOCKWORKS_TOPOLOGY. `make fuzz` builds and runs it. */
/* libFuzzer reports an abort, with the text that led to it. */
#define LW_TEST_FAIL() abort()
#include "topology_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	CHECK(text);
	memcpy(text, data, size);
	text[size] = '\0';
	check_topology_text(text);
	free(text);
	return 0;
}
