/* tactus.h: marks the cycles of a program, so that tactus can measure them. For C99 and C++11, GCC or Clang, on Linux.
 *
 *     struct tactus t;
 *     int error = tactus_open(&t, "/dev/shm/control", 1000000);   // a period of 1 ms; 0: none
 *     for (...) {
 *         sleep_until(due);
 *         tactus_start(&t, due);                                  // 0: no due time
 *         work();
 *         tactus_end(&t);
 *     }
 *     tactus_close(&t);
 *
 * One thread may mark. Between tactus_start() and tactus_end() nothing waits, allocates or calls the system: two readings
 * of the clock by the vDSO, and a few stores to memory that is there already. A ring that is full is written over.
 *
 * Include it before other headers where the compiler is told -std=c99, or define _POSIX_C_SOURCE as 200809L.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TACTUS_H
#define TACTUS_H

#if defined(__STRICT_ANSI__) && !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOCK_MONOTONIC
#error "include tactus.h before other headers, or define _POSIX_C_SOURCE as 200809L"
#endif

#ifdef __cplusplus
extern "C" {
#elif !defined(_GNU_SOURCE)
/* The C library has it, and does not say so without _GNU_SOURCE. */
extern int sched_getcpu(void);
#endif

#define TACTUS_VERSION 1u
#define TACTUS_RING_OFFSET 4096u
#define TACTUS_CAPACITY 16384u
#define TACTUS_CLOCK_MONOTONIC 1u
#define TACTUS_NAME_BYTES 32
#define TACTUS_OPEN 1u
#define TACTUS_CLOSED 2u
#define TACTUS_NO_CPU 0xffffffffu
#define TACTUS_PATH_BYTES 512

/* The beginning of the file. What comes before `written` never changes. */
struct tactus_header {
	unsigned char magic[8];    /* "tactus\x1a\n" */
	uint32_t version;
	uint32_t record_bytes;
	uint64_t capacity;         /* records of the ring, a power of two */
	uint64_t session;          /* when it was opened, ns */
	uint32_t clock;            /* TACTUS_CLOCK_MONOTONIC */
	uint32_t process;
	uint64_t period_ns;        /* 0: not said */
	uint64_t reserved[2];
	char name[TACTUS_NAME_BYTES];
	uint64_t reserved_too[4];
	uint64_t written;          /* records that are written, ever */
	uint32_t state;            /* TACTUS_OPEN or TACTUS_CLOSED */
	uint32_t reserved_at_last;
};

/* A cycle. All times are CLOCK_MONOTONIC, in ns. */
struct tactus_record {
	uint64_t number;           /* from 1; 0 while it is being written */
	uint64_t due;              /* 0: none */
	uint64_t start;
	uint64_t end;
	uint32_t cpu;              /* where it ended; TACTUS_NO_CPU: not known */
	uint32_t reserved;
};

/* A program that marks its cycles. Its fields are nobody else's. */
struct tactus {
	struct tactus_header *header;
	struct tactus_record *ring;
	uint64_t written, due, start;
	size_t bytes;
	dev_t dev;
	ino_t ino;
	char path[TACTUS_PATH_BYTES];
};

/* CLOCK_MONOTONIC, in ns. */
static inline uint64_t tactus_now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Makes the file at `path` anew, for cycles that are due every `period_ns` (0: they have no period). Who looks for it finds
 * it whole or not at all; one that another program left there is replaced. Returns 0, or an errno. */
static inline int tactus_open(struct tactus *t, const char *path, uint64_t period_ns)
{
	char beside[TACTUS_PATH_BYTES + 16];
	struct stat found;
	void *at = MAP_FAILED;
	FILE *own;
	int fd, error;

	memset(t, 0, sizeof *t);
	if (strlen(path) >= sizeof t->path)
		return ENAMETOOLONG;
	strcpy(t->path, path);
	snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
	if (unlink(beside) != 0 && errno != ENOENT)
		return errno;
	fd = open(beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return errno;
	t->bytes = TACTUS_RING_OFFSET + TACTUS_CAPACITY * sizeof(struct tactus_record);
	/* Taken now: memory that is lacking would end the program in the middle of a cycle. */
	error = posix_fallocate(fd, 0, (off_t)t->bytes);
	if (error == EOPNOTSUPP || error == EINVAL)
		error = ftruncate(fd, (off_t)t->bytes) == 0 ? 0 : errno;
	if (error == 0) {
		at = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		error = at == MAP_FAILED || fstat(fd, &found) != 0 ? errno : 0;
	}
	close(fd);
	if (error == 0) {
		/* All of it is touched, and locked where that is allowed: no cycle waits for a page. */
		memset(at, 0, t->bytes);
		(void)mlock(at, t->bytes);
		t->header = (struct tactus_header *)at;
		t->ring = (struct tactus_record *)(void *)((char *)at + TACTUS_RING_OFFSET);
		memcpy(t->header->magic, "tactus\x1a\n", sizeof t->header->magic);
		t->header->version = TACTUS_VERSION;
		t->header->record_bytes = (uint32_t)sizeof(struct tactus_record);
		t->header->capacity = TACTUS_CAPACITY;
		t->header->session = tactus_now();
		t->header->clock = TACTUS_CLOCK_MONOTONIC;
		t->header->process = (uint32_t)getpid();
		t->header->period_ns = period_ns;
		own = fopen("/proc/self/comm", "re");
		if (own) {
			if (fgets(t->header->name, (int)sizeof t->header->name, own))
				t->header->name[strcspn(t->header->name, "\n")] = 0;
			fclose(own);
		}
		t->header->state = TACTUS_OPEN;
		t->dev = found.st_dev;
		t->ino = found.st_ino;
		__atomic_thread_fence(__ATOMIC_RELEASE);
		error = rename(beside, path) == 0 ? 0 : errno;
	}
	if (error != 0) {
		if (at != MAP_FAILED)
			munmap(at, t->bytes);
		t->header = NULL;
		unlink(beside);
	}
	return error;
}

/* A cycle begins that was due at `due`; 0: it has no due time. */
static inline void tactus_start(struct tactus *t, uint64_t due)
{
	t->due = due;
	t->start = tactus_now();
}

/* Marks a whole cycle. */
static inline void tactus_mark(struct tactus *t, uint64_t due, uint64_t start, uint64_t end)
{
	struct tactus_record *record = &t->ring[t->written & (TACTUS_CAPACITY - 1)];
	int cpu = sched_getcpu();

	__atomic_store_n(&record->number, 0, __ATOMIC_RELAXED);
	/* Who sees anything of what follows sees that the record is none. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&record->due, due, __ATOMIC_RELAXED);
	__atomic_store_n(&record->start, start, __ATOMIC_RELAXED);
	__atomic_store_n(&record->end, end, __ATOMIC_RELAXED);
	__atomic_store_n(&record->cpu, cpu < 0 ? TACTUS_NO_CPU : (uint32_t)cpu, __ATOMIC_RELAXED);
	t->written += 1;
	__atomic_store_n(&record->number, t->written, __ATOMIC_RELEASE);
	__atomic_store_n(&t->header->written, t->written, __ATOMIC_RELEASE);
}

/* The cycle that began last ends. */
static inline void tactus_end(struct tactus *t)
{
	tactus_mark(t, t->due, t->start, tactus_now());
}

/* Says that nothing more comes, and removes the file where it is still this program's. */
static inline void tactus_close(struct tactus *t)
{
	struct stat found;

	if (!t->header)
		return;
	__atomic_store_n(&t->header->state, TACTUS_CLOSED, __ATOMIC_RELEASE);
	munmap((void *)t->header, t->bytes);
	t->header = NULL;
	if (lstat(t->path, &found) == 0 && found.st_dev == t->dev && found.st_ino == t->ino)
		unlink(t->path);
}

#ifdef __cplusplus
}
#endif

#endif
