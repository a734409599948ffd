/* The barest loop of dependent loads, as lmbench's lat_mem_rd has it: one address in each line of 64 bytes, in one ring
 * at random through all of them, in pages of 4 KiB.
 *
 *   chase BYTES MILLISECONDS [read]    prints the ns of a load: the median of passes of about a millisecond
 *
 * `read`: the array is read five times before each pass, in the order of its addresses. Without that a line is touched once
 * in a turn through the ring, and a cache that is shared with others may have given it up by then.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, PASSES = 100000 };

static uint64_t now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static uint64_t drawn(void)
{
	static uint64_t state = 88172645463325252;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int compared(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

int main(int count, char **words)
{
	int given = count == 3 || (count == 4 && !strcmp(words[3], "read"));
	size_t bytes = given ? strtoull(words[1], 0, 10) : 0, lines = bytes / LINE;
	uint64_t span = given ? strtoull(words[2], 0, 10) * 1000000 : 0;
	if (lines < 2 || !span) {
		fprintf(stderr, "usage: chase BYTES MILLISECONDS [read]\n");
		return 2;
	}
	char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *order = malloc(lines * sizeof *order);
	if (memory == MAP_FAILED || !order || madvise(memory, bytes, MADV_NOHUGEPAGE)) {
		perror("chase");
		return 2;
	}
	/* Sattolo: one ring through all of them. */
	for (size_t at = 0; at < lines; at++)
		order[at] = at;
	for (size_t at = lines - 1; at > 0; at--) {
		size_t other = drawn() % at;
		uint32_t kept = order[at];
		order[at] = order[other];
		order[other] = kept;
	}
	for (size_t at = 0; at < lines; at++)
		*(char **)(memory + at * LINE) = memory + (size_t)order[at] * LINE;
	free(order);

	char **next = (char **)memory;
	for (size_t at = 0; at < lines; at++)
		next = (char **)*next;
	double *passes = malloc(PASSES * sizeof *passes);
	size_t batch = 1000, many = 0;
	uint64_t sum = 1;
	for (uint64_t end = now() + span; many < PASSES && passes && now() < end;) {
		for (int reading = 0; count == 4 && reading < 5; reading++)
			for (size_t at = 0; at < lines; at++)
				sum += *(volatile uint64_t *)(memory + at * LINE);
		/* That has left the entries of the page tables in the order of the addresses. */
		for (size_t load = 0; count == 4 && load < lines / 128; load++)
			next = (char **)*next;
		uint64_t began = now();
		for (size_t load = 0; load < batch; load++)
			next = (char **)*next;
		uint64_t took = now() - began;
		if (took < 500000)
			batch *= 2;
		else
			passes[many++] = (double)took / batch;
	}
	if (!many || !next || !sum) {
		fprintf(stderr, "chase: not one pass of half a millisecond: measure for longer\n");
		return 2;
	}
	qsort(passes, many, sizeof *passes, compared);
	printf("%.3f\n", passes[many / 2]);
	return 0;
}
