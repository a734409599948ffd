/* A control loop that marks its cycles for tactus, and overruns in known ones.
 *
 *     cc -O2 -I crates/tactus-application/include -o cycle examples/application/cycle.c
 *     ./cycle /dev/shm/control 1000 10000        # 10000 cycles of 1 ms; 0: until it is told to end
 *     ./cycle /dev/shm/control 1000 10000 500 3  # three periods and a half in the 500th cycle, the 1000th and the 1500th;
 *                                                # what they missed is left out
 *     ./cycle /dev/shm/control 1000 10000 500 3 late  # the same, and what they missed is done late
 */
#include "tactus.h"

#include <signal.h>
#include <stdlib.h>

static volatile sig_atomic_t told_to_end;

static void end(int number)
{
	(void)number;
	told_to_end = 1;
}

static void sleep_until(uint64_t due)
{
	struct timespec time;

	time.tv_sec = (time_t)(due / 1000000000u);
	time.tv_nsec = (long)(due % 1000000000u);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR && !told_to_end) {
	}
}

int main(int count, char **words)
{
	struct tactus t;
	uint64_t period, due, cycles, every, longer, number;
	int late, error;

	if (count < 4) {
		fprintf(stderr, "usage: cycle FILE PERIOD_US CYCLES [EVERY PERIODS [late]]\n");
		return 2;
	}
	period = strtoull(words[2], NULL, 10) * 1000;
	cycles = strtoull(words[3], NULL, 10);
	every = count > 5 ? strtoull(words[4], NULL, 10) : 0;
	longer = count > 5 ? strtoull(words[5], NULL, 10) : 0;
	late = count > 6;
	signal(SIGTERM, end);
	signal(SIGINT, end);

	error = tactus_open(&t, words[1], period);
	if (error != 0) {
		fprintf(stderr, "cycle: %s: %s\n", words[1], strerror(error));
		return 1;
	}
	due = tactus_now();
	for (number = 1; !told_to_end && (cycles == 0 || number <= cycles); number++) {
		due += period;
		sleep_until(due);
		tactus_start(&t, due);
		/* Here is what the program is for. */
		if (every > 0 && number % every == 0 && number <= 3 * every)
			sleep_until(due + longer * period + period / 2);
		tactus_end(&t);
		if (!late)
			while (tactus_now() >= due + period)
				due += period;
	}
	tactus_close(&t);
	return 0;
}
