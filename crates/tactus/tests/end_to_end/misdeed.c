/* A program with a period of 5 ms that marks its cycles. Every 20th lasts 3 ms longer: it sleeps, waits for a lock, or has
 * something to do.
 *
 *     misdeed FILE sleep|lock|work
 */
#define _GNU_SOURCE
#include "tactus.h"

#include <pthread.h>
#include <sched.h>

#define LONGER 3000000u
#define PERIOD 5000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int wanted;

static void sleep_until(uint64_t due)
{
	struct timespec time;

	time.tv_sec = (time_t)(due / 1000000000u);
	time.tv_nsec = (long)(due % 1000000000u);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
	}
}

/* Holds the lock on another CPU, as a thread of ordinary priority. */
static void *holder(void *unused)
{
	struct sched_param ordinary = {0};
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first) != 0 || sched_setscheduler(0, SCHED_OTHER, &ordinary) != 0)
		return unused;
	for (;;) {
		if (wanted) {
			pthread_mutex_lock(&lock);
			wanted = 0;
			sleep_until(tactus_now() + LONGER);
			pthread_mutex_unlock(&lock);
		}
		sleep_until(tactus_now() + 100000);
	}
}

int main(int count, char **words)
{
	struct tactus t;
	uint64_t due, number, until;
	pthread_t thread;

	if (count != 3 || tactus_open(&t, words[1], PERIOD) != 0 || pthread_create(&thread, NULL, holder, NULL) != 0)
		return 1;
	due = tactus_now();
	for (number = 1;; number++) {
		due += PERIOD;
		sleep_until(due);
		tactus_start(&t, due);
		if (number % 20 == 0) {
			switch (words[2][0]) {
			case 's':
				sleep_until(tactus_now() + LONGER);
				break;
			case 'l':
				wanted = 1;
				while (wanted) {
				}
				pthread_mutex_lock(&lock);
				pthread_mutex_unlock(&lock);
				break;
			default:
				until = tactus_now() + LONGER;
				while (tactus_now() < until) {
				}
			}
		}
		tactus_end(&t);
	}
}
