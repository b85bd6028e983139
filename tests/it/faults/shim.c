/* Preloaded into the daemon by tests/it/faults/shim.rs. Makes reads, writes and syncs of session files fail
   or pause, as the lines of the file named by SHIM_ACTIONS say. Each line is an action for one call,
   "<call> <action> <number>", and is removed by that call:

     write error 28    the write fails with this errno     sync error 5    the same for a sync
     write short 10    at most 10 bytes are written        write pass 0    the write succeeds
     write pause 300   300 ms before the write             sync pause 300  300 ms before the sync
     read pause 300    300 ms before a read behind the first MiB of a file
     write kill 0      the process is killed before the write, and with "sync" before the sync

   A call for which the first line is not meant succeeds. The paths of synced files are appended to the file
   named by SHIM_SYNCED, if it is set. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int is_session(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return strstr(path, ".jsonl") != NULL;
}

/* Removes the first action and returns it if it is for this call. */
static int action(int fd, const char *call, char *what, long *number) {
    const char *name = getenv("SHIM_ACTIONS");
    if (!name || !is_session(fd)) return 0;
    char text[4096], wanted[32];
    int in = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
    if (in < 0) return 0;
    ssize_t n = syscall(SYS_read, in, text, sizeof text - 1);
    syscall(SYS_close, in);
    if (n <= 0) return 0;
    text[n] = 0;
    if (sscanf(text, "%31s %31s %ld", wanted, what, number) != 3 || strcmp(wanted, call)) return 0;
    char *rest = strchr(text, '\n');
    rest = rest ? rest + 1 : text + n;
    int out = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_TRUNC | O_CLOEXEC, 0);
    syscall(SYS_write, out, rest, strlen(rest));
    syscall(SYS_close, out);
    return 1;
}

static void pause_for(long milliseconds) {
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

ssize_t pread64(int fd, void *buffer, size_t size, off64_t at) {
    char what[32];
    long number;
    if (at >= 1 << 20 && action(fd, "read", what, &number)) pause_for(number);
    return syscall(SYS_pread64, fd, buffer, size, at);
}

ssize_t write(int fd, const void *buffer, size_t size) {
    char what[32];
    long number;
    if (action(fd, "write", what, &number)) {
        if (!strcmp(what, "kill")) kill(getpid(), SIGKILL);
        if (!strcmp(what, "pause")) pause_for(number);
        if (!strcmp(what, "error")) { errno = (int)number; return -1; }
        if (!strcmp(what, "short") && (size_t)number < size) size = (size_t)number;
    }
    return syscall(SYS_write, fd, buffer, size);
}

/* Appends the path of a synced file to the file named by SHIM_SYNCED. */
static void note(int fd) {
    const char *name = getenv("SHIM_SYNCED");
    char link[64], path[4096];
    if (!name) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    int out = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (n > 0 && out >= 0) {
        path[n] = '\n';
        syscall(SYS_write, out, path, n + 1);
    }
    if (out >= 0) syscall(SYS_close, out);
}

static int sync_call(int fd, long call) {
    char what[32];
    long number;
    if (action(fd, "sync", what, &number)) {
        if (!strcmp(what, "kill")) kill(getpid(), SIGKILL);
        if (!strcmp(what, "error")) { errno = (int)number; return -1; }
        if (!strcmp(what, "pause")) pause_for(number);
    }
    int result = (int)syscall(call, fd);
    if (!result) note(fd);
    return result;
}

/* The time of day is SHIM_CLOCK, in seconds since 1970, if it is set. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    const char *seconds = getenv("SHIM_CLOCK");
    if (!seconds || clock != CLOCK_REALTIME) return (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec = atol(seconds);
    now->tv_nsec = 0;
    return 0;
}

int fsync(int fd) { return sync_call(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_call(fd, SYS_fdatasync); }
