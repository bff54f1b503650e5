/* Loaded into each process of a fleet (LD_PRELOAD): notes what the process writes below one folder,
 * and what it syncs, from which the test derives what a loss of power may leave. A sync is only
 * noted: the test decides what has reached the disk.
 *
 * Each process has a log of its own. All share a clock, a number in a file, that each note advances
 * by one. A note has the time before its call and the time after it: what was noted before a sync
 * began is synced. Shared memory (-shm, which SQLite builds anew) and logs are left out. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NAME 512
#define FILES 4096

enum { WRITE = 1, TRUNCATE, SYNC, CREATE, UNLINK, RENAME };

struct note {
    uint64_t before, after, kind, name_bytes, offset, data_bytes;
};

static char folder[NAME];
static int notes = -1;
static uint64_t *now;
/* What is open, by descriptor; empty if it is not noted. */
static char names[FILES][NAME];

static uint64_t tick(void) { return __atomic_fetch_add(now, 1, __ATOMIC_SEQ_CST); }

static void note(uint64_t before, uint64_t kind, const char *name, uint64_t offset,
                 const void *data, uint64_t data_bytes) {
    struct note head = {before, tick(), kind, strlen(name), offset, data_bytes};
    struct iovec parts[] = {{&head, sizeof head},
                            {(void *)name, head.name_bytes},
                            {(void *)data, data_bytes}};
    syscall(SYS_writev, notes, parts, 3);
}

__attribute__((constructor)) static void begin(void) {
    const char *below = getenv("RECORDED_FOLDER"), *to = getenv("RECORDED_TO");
    char path[NAME * 2];
    if (!below || !to || strlen(below) >= NAME) return;
    snprintf(path, sizeof path, "%s/clock", to);
    int clock = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (clock < 0) return;
    now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED, clock, 0);
    syscall(SYS_close, clock);
    if (now == MAP_FAILED) return;
    snprintf(path, sizeof path, "%s/%d.notes", to, getpid());
    notes = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(folder, sizeof folder, "%s/", below);
}

static int is_noted(const char *name) {
    size_t length = strlen(name);
    return notes >= 0 && strncmp(name, folder, strlen(folder)) == 0 &&
           !(length > 4 && strcmp(name + length - 4, "-shm") == 0) && !strstr(name, "/logs/");
}

static const char *name_of(int fd) {
    return fd >= 0 && fd < FILES && names[fd][0] ? names[fd] : NULL;
}

static int opened(int fd, int flags) {
    if (fd < 0 || fd >= FILES || notes < 0) return fd;
    char link[64], name[NAME];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    names[fd][0] = 0;
    if (length <= 0) return fd;
    name[length] = 0;
    if (!is_noted(name)) return fd;
    strcpy(names[fd], name);
    uint64_t before = tick();
    if (flags & O_CREAT) note(before, CREATE, name, 0, "", 0);
    if (flags & O_TRUNC) note(before, TRUNCATE, name, 0, "", 0);
    return fd;
}

static int open_at(int at, const char *path, int flags, mode_t mode) {
    return opened(syscall(SYS_openat, at, path, flags, mode), flags);
}

#define WITH_MODE                     \
    va_list more;                     \
    va_start(more, flags);            \
    mode_t mode = va_arg(more, int);  \
    va_end(more)

int open(const char *path, int flags, ...) { WITH_MODE; return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { WITH_MODE; return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { WITH_MODE; return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { WITH_MODE; return open_at(at, path, flags, mode); }

int close(int fd) {
    if (fd == notes && notes >= 0) return 0;
    if (fd >= 0 && fd < FILES) names[fd][0] = 0;
    return syscall(SYS_close, fd);
}

static ssize_t written(int fd, off_t offset, const void *data, ssize_t bytes) {
    if (bytes > 0 && name_of(fd)) note(0, WRITE, names[fd], offset, data, bytes);
    return bytes;
}

ssize_t write(int fd, const void *data, size_t bytes) {
    off_t at = 0;
    if (name_of(fd)) {
        int appends = fcntl(fd, F_GETFL) & O_APPEND;
        at = lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
    }
    return written(fd, at, data, syscall(SYS_write, fd, data, bytes));
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) {
    return written(fd, at, data, syscall(SYS_pwrite64, fd, data, bytes, at));
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
    return pwrite64(fd, data, bytes, at);
}

int ftruncate64(int fd, off64_t length) {
    int done = syscall(SYS_ftruncate, fd, length);
    if (done == 0 && name_of(fd)) note(0, TRUNCATE, names[fd], length, "", 0);
    return done;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int fsync(int fd) {
    if (!name_of(fd)) return syscall(SYS_fsync, fd);
    uint64_t before = tick();
    /* As long as a disk takes; what others write meanwhile is not synced. */
    usleep(2000);
    note(before, SYNC, names[fd], 0, "", 0);
    return 0;
}

int fdatasync(int fd) {
    if (!name_of(fd)) return syscall(SYS_fdatasync, fd);
    return fsync(fd);
}

/* A path as the notes have it. */
static void absolute(const char *path, char *name) {
    char here[NAME / 2];
    if (path[0] == '/' || !getcwd(here, sizeof here)) snprintf(name, NAME, "%s", path);
    else snprintf(name, NAME, "%s/%.200s", here, path);
}

int unlink(const char *path) {
    int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    char name[NAME];
    absolute(path, name);
    if (done == 0 && is_noted(name)) note(0, UNLINK, name, 0, "", 0);
    return done;
}

int rename(const char *from, const char *to) {
    int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    char old[NAME], new[NAME];
    absolute(from, old);
    absolute(to, new);
    if (done == 0 && is_noted(old) && is_noted(new)) note(0, RENAME, old, 0, new, strlen(new));
    return done;
}

/* The test writes what is left into new files. Without the times at which they were created, the
 * dispatcher takes its file for the same as before, as it does after a real loss of power. */
int statx(int at, const char *path, int flags, unsigned wanted, struct statx *found) {
    int done = syscall(SYS_statx, at, path, flags, wanted, found);
    if (done == 0) found->stx_mask &= ~STATX_BTIME;
    return done;
}
