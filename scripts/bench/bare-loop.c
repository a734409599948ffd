/* The least that a cyclic thread can be, to hold the probe against (disturbance.py): one thread, one system call per
   period, memory locked, nothing recorded but the largest latency.

   usage: bare-loop CPU INTERVAL_US SECONDS PRIORITY */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv)
{
	struct sched_param param;
	struct timespec due, now;
	long long interval, cycles, largest = 0;
	cpu_set_t set;

	if (argc != 5)
		return 2;
	interval = atoll(argv[2]) * 1000;
	cycles = atoll(argv[3]) * 1000000000 / interval;
	param.sched_priority = atoi(argv[4]);
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setaffinity(0, sizeof(set), &set) ||
	    sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("bare-loop");
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &due);
	while (cycles-- > 0) {
		long long late;

		due.tv_nsec += interval;
		while (due.tv_nsec >= 1000000000) {
			due.tv_nsec -= 1000000000;
			due.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		late = (now.tv_sec - due.tv_sec) * 1000000000LL + now.tv_nsec - due.tv_nsec;
		if (late > largest)
			largest = late;
	}
	printf("largest %lld ns\n", largest);
	return 0;
}
