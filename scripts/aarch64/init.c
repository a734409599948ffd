/* The first process of the machine in which scripts/aarch64.sh tries tactus: it does what /commands says, a line
 * each, and says how each ended. Words are split at blanks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void attach(const char *kind, const char *place)
{
	mkdir(place, 0755);
	if (mount(kind, place, kind, 0, NULL) && errno != EBUSY)
		printf("no %s: %s\n", place, strerror(errno));
}

static int done(char *line)
{
	char *words[64], *word;
	int count = 0, status = 0;
	pid_t child;

	for (word = strtok(line, " "); word && count < 63; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	child = fork();
	if (child == 0) {
		execvp(words[0], words);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void)
{
	char line[4096];
	FILE *commands;
	int number = 0;

	attach("proc", "/proc");
	attach("sysfs", "/sys");
	attach("devtmpfs", "/dev");
	attach("tmpfs", "/run");
	attach("tmpfs", "/tmp");
	attach("debugfs", "/sys/kernel/debug");
	attach("tracefs", "/sys/kernel/tracing");
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/", 1);
	commands = fopen("/proc/sys/kernel/printk", "w");
	if (commands) {
		fputs("1", commands);
		fclose(commands);
	}
	commands = fopen("/commands", "r");
	while (commands && fgets(line, sizeof(line), commands)) {
		line[strcspn(line, "\n")] = 0;
		printf("\nBEGIN %d %s\n", number, line);
		fflush(stdout);
		printf("\nEND %d %d\n", number, done(line));
		fflush(stdout);
		number++;
	}
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
