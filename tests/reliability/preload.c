// What stands between the daemon and the kernel in a run of tests/reliability, put there by LD_PRELOAD: a recorder of what
// is written and synced, a clock that cannot be read, over which the daemon panics, and ways to make an honest daemon wrong,
// since a check that never fails is none.
//
//   BETWEEN_MATCH   only files whose path holds this word
//   BETWEEN_RECORD  a file that every write, change of length, sync (also one that failed) and removal is appended to, with its
//                   instant
//   BETWEEN_DIR     the directory of these files: what is made, linked and synced of its names is recorded, too
//   BETWEEN_WRONG   late:   what is written reaches the kernel, in its order, 50 ms after the daemon was told that it did
//                   nosync: nothing is synced, and success is told
//                   deaf:   a failed write or sync is told as a success
//
// A record is {op, length of the path, 0, bytes, offset, nanoseconds since 1970}, the path, the bytes. The bytes of a link are the
// path it was made of.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FILES 65536
#define LATE_NS 50000000ull

struct record { uint8_t op, path_bytes; uint16_t zero; uint32_t bytes; uint64_t offset, ns; } __attribute__((packed));
struct pending { struct pending *next; char *path; int fd; uint64_t offset, due; size_t bytes; char data[]; };

static char *paths[FILES];
static int record_fd = -1, is_late, is_unsynced, is_deaf, has_flusher, is_living, is_aborting, is_leaking;
static const char *match, *clock_dir, *names_dir;
static __thread int has_no_time;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *first, **last = &first;

static uint64_t now(clockid_t clock) {
    struct timespec at;
    syscall(SYS_clock_gettime, clock, &at);
    return at.tv_sec * 1000000000ull + at.tv_nsec;
}

__attribute__((constructor)) static void begin(void) {
    const char *record = getenv("BETWEEN_RECORD"), *wrong = getenv("BETWEEN_WRONG");
    match = getenv("BETWEEN_MATCH");
    is_late = wrong && !strcmp(wrong, "late");
    is_unsynced = wrong && !strcmp(wrong, "nosync");
    is_deaf = wrong && !strcmp(wrong, "deaf");
    is_living = wrong && !strcmp(wrong, "lives");
    is_aborting = wrong && !strcmp(wrong, "aborts");
    is_leaking = wrong && !strcmp(wrong, "leaks");
    clock_dir = getenv("BETWEEN_CLOCK");
    names_dir = getenv("BETWEEN_DIR");
    if (record) record_fd = syscall(SYS_openat, AT_FDCWD, record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static const char *path_of(int fd) { return fd >= 0 && fd < FILES ? paths[fd] : NULL; }

// What is mapped into memory is there at once.
static int goes_late(const char *path) {
    size_t n = strlen(path);
    return is_late && (n < 4 || strcmp(path + n - 4, "-shm"));
}

static void note(char op, const char *path, uint64_t offset, const void *data, uint32_t bytes) {
    if (record_fd < 0) return;
    char head[sizeof(struct record) + 255];
    size_t n = strlen(path) > 255 ? 255 : strlen(path);
    struct record r = {op, n, 0, bytes, offset, 0};
    pthread_mutex_lock(&lock);
    r.ns = now(CLOCK_REALTIME);
    memcpy(head, &r, sizeof r);
    memcpy(head + sizeof r, path, n);
    syscall(SYS_write, record_fd, head, sizeof r + n);
    if (bytes && data) syscall(SYS_write, record_fd, data, bytes);
    pthread_mutex_unlock(&lock);
}

// Called with the lock held: hands over what is due, all of it when `all`.
static void hand_over(int all) {
    while (first && (all || first->due <= now(CLOCK_MONOTONIC))) {
        struct pending *p = first;
        first = p->next;
        if (!first) last = &first;
        syscall(SYS_pwrite64, p->fd, p->data, p->bytes, p->offset);
        free(p);
    }
}

static void *flusher(void *unused) {
    for (;;) {
        usleep(2000);
        pthread_mutex_lock(&lock);
        hand_over(0);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

__attribute__((destructor)) static void end(void) {
    pthread_mutex_lock(&lock);
    hand_over(1);
    pthread_mutex_unlock(&lock);
}

static void keep(int fd, const void *data, size_t bytes, uint64_t offset) {
    struct pending *p = malloc(sizeof *p + bytes);
    *p = (struct pending){NULL, paths[fd], fd, offset, now(CLOCK_MONOTONIC) + LATE_NS, bytes};
    memcpy(p->data, data, bytes);
    pthread_mutex_lock(&lock);
    *last = p;
    last = &p->next;
    if (!has_flusher) {
        pthread_t thread;
        has_flusher = !pthread_create(&thread, NULL, flusher, NULL);
    }
    pthread_mutex_unlock(&lock);
}

static ssize_t written(int fd, const void *data, size_t bytes, off64_t offset) {
    const char *path = path_of(fd);
    if (path && goes_late(path)) {
        keep(fd, data, bytes, offset);
        return bytes;
    }
    ssize_t n = syscall(SYS_pwrite64, fd, data, bytes, offset);
    if (path && n < 0 && is_deaf) return bytes;
    if (path && n > 0) note('W', path, offset, data, n);
    return n;
}

static ssize_t was_read(int fd, void *data, size_t bytes, off64_t offset) {
    const char *path = path_of(fd);
    if (!path || !goes_late(path)) return syscall(SYS_pread64, fd, data, bytes, offset);
    pthread_mutex_lock(&lock);
    ssize_t n = syscall(SYS_pread64, fd, data, bytes, offset);
    for (struct pending *p = first; p && n >= 0; p = p->next) {
        int64_t from = (int64_t)p->offset - offset, skip = 0, len = p->bytes;
        if (from < 0) { skip = -from; len -= skip; from = 0; }
        if (len <= 0 || from >= (int64_t)bytes || !path_of(p->fd) || strcmp(path_of(p->fd), path)) continue;
        if (from + len > (int64_t)bytes) len = bytes - from;
        memcpy((char *)data + from, p->data + skip, len);
        if (from + len > n) n = from + len;
    }
    pthread_mutex_unlock(&lock);
    return n;
}

static int resized(int fd, off64_t length) {
    const char *path = path_of(fd);
    if (path && is_late) {
        pthread_mutex_lock(&lock);
        hand_over(1);
        pthread_mutex_unlock(&lock);
    }
    int r = syscall(SYS_ftruncate, fd, length);
    if (path && !r) note('T', path, length, NULL, 0);
    return r;
}

static int is_names(const char *path) {
    size_t n = names_dir ? strlen(names_dir) : 0;
    return n && !strncmp(path, names_dir, n) && (!path[n] || !strcmp(path + n, "/"));
}

static int synced(int fd, long call) {
    const char *path = path_of(fd);
    if (path && (is_unsynced || goes_late(path))) return 0;
    int r = syscall(call, fd);
    if (path && is_names(path)) {
        if (!r) note('D', path, 0, NULL, 0);
        return r;
    }
    if (path) note(r ? 'F' : 'S', path, 0, NULL, 0);
    return path && r && is_deaf ? 0 : r;
}

static int opened(int fd, const char *path, int is_new) {
    int is_matched = match && strstr(path, match);
    if (fd >= 0 && fd < FILES && (is_matched || is_names(path))) {
        free(paths[fd]);
        paths[fd] = strdup(path);
        if (is_new && is_matched && names_dir) note('C', path, 0, NULL, 0);
    }
    return fd;
}

static int makes(const char *path, int flags) {
    return (flags & O_CREAT) && syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
}

#define OPEN(name, call) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        int is_new = makes(path, flags); \
        return opened(call, path, is_new); \
    }
OPEN(open, syscall(SYS_openat, AT_FDCWD, path, flags, mode))
OPEN(open64, syscall(SYS_openat, AT_FDCWD, path, flags, mode))

int close(int fd) {
    if (path_of(fd)) {
        if (is_late) {
            pthread_mutex_lock(&lock);
            hand_over(1);
            pthread_mutex_unlock(&lock);
        }
        free(paths[fd]);
        paths[fd] = NULL;
    }
    return syscall(SYS_close, fd);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return written(fd, data, n, at); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { return written(fd, data, n, at); }
ssize_t pread(int fd, void *data, size_t n, off_t at) { return was_read(fd, data, n, at); }
ssize_t pread64(int fd, void *data, size_t n, off64_t at) { return was_read(fd, data, n, at); }
int ftruncate(int fd, off_t n) { return resized(fd, n); }
int ftruncate64(int fd, off64_t n) { return resized(fd, n); }
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    int r = syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
    if (!r && names_dir && match && strstr(to, match)) note('L', to, 0, from, strlen(from));
    return r;
}

int unlink(const char *path) {
    int r = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!r && match && strstr(path, match)) note('U', path, 0, NULL, 0);
    return r;
}

// True once for each fault that is meant for this thread.
static int is_gone(clockid_t clock) {
    char path[512], name[17] = "";
    if (!clock_dir) return 0;
    if (has_no_time && clock == CLOCK_REALTIME) {
        has_no_time = 0;
        return 1;
    }
    prctl(PR_GET_NAME, name);
    snprintf(path, sizeof path, "%s/%s", clock_dir, name);
    // Whoever removes it is who it is for.
    return !syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int kept = errno;
    if (is_gone(clock)) {
        if (is_aborting) abort();
        errno = EINVAL;
        return -1;
    }
    errno = kept;
    return syscall(SYS_clock_gettime, clock, at);
}

ssize_t recv(int fd, void *data, size_t bytes, int flags) {
    static _Atomic unsigned pieces;
    static void *volatile kept;
    ssize_t n = syscall(SYS_recvfrom, fd, data, bytes, flags, NULL, NULL);
    if (n > 0 && clock_dir && memmem(data, n, "X-Clock: gone", 13)) has_no_time = 1;
    if (n > 0 && is_leaking) {
        void *more = malloc(1024);
        if (!more) abort();
        memset(more, 1, 1024);
        *(void **)more = kept;
        kept = more;
        if (++pieces % 1000 == 0 && dup(fd) < 0) abort();
    }
    return n;
}

void exit(int code) {
    while (is_living && code) pause();
    void (*ends)(int) = (void (*)(int))dlsym(RTLD_NEXT, "exit");
    ends(code);
    abort();
}
