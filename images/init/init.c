/* cab's PID 1. What it does and in what order: docs/architecture.md, "A container of cab's".
 *
 * It runs as the agent's own uid, without capabilities, and must not be ended, read or spoken for by the agent:
 * the kernel drops every signal sent to it from inside that has no handler, and it has none (SIGCHLD is only ever
 * read from a signalfd). `docker stop` is answered by the container's stop signal, SIGKILL, for the same reason. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_SOCKET "/run/cab/control.sock"

/* Exit codes, for the case that no `end` was said. */
enum { CONTROL_LOST = 10, MODEL_LOST = 11, UNFIT = 12 };
enum { CONTROL, MODEL, CHILDREN, CLOCK, NAMES, FIXED_POLLFDS };
enum { REAPS_A_TURN = 64, BYE_MS = 5000 };
static const int64_t NS_A_SECOND = 1000000000;

static struct {
    const char *model_path;
    int port, names_port;
    int64_t limit_ms;
    struct winsize tty;
    char **argv;
} options;

static struct pollfd fds[FIXED_POLLFDS + FORWARD_POLLFDS] = {
    [CONTROL] = {.fd = -1, .events = POLLIN},
    [MODEL] = {.fd = -1, .events = POLLIN},
    [CHILDREN] = {.fd = -1, .events = POLLIN},
    [CLOCK] = {.fd = -1, .events = POLLIN},
    [NAMES] = {.fd = -1, .events = POLLIN},
};
static int oom_counter;

static struct {
    pid_t pid;
    bool ended;
    int status;
    int64_t start_ns, end_ns;
} agent;

static bool paused, kill_asked, expired;
static struct itimerspec left; /* of the limit */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_A_SECOND + now.tv_nsec;
}

/* ---- the control line ---- */

static void say(const char *line)
{
    size_t length = strlen(line);
    if (send(fds[CONTROL].fd, line, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length) _exit(CONTROL_LOST);
}

static _Noreturn void fail(int error)
{
    char line[128];
    snprintf(line, sizeof line, "failed %d %s\n", error, strerror(error));
    say(line);
    _exit(UNFIT);
}

static void set_clock(const struct itimerspec *time)
{
    if (timerfd_settime(fds[CLOCK].fd, 0, time, NULL) < 0) fail(errno);
}

static void start(void)
{
    agent.start_ns = now_ns();
    pid_t pid = agent_start(options.argv);
    if (pid < 0) fail(-pid);
    agent.pid = pid;
    if (!paused) set_clock(&left);
    char line[64];
    snprintf(line, sizeof line, "started %lld\n", (long long)agent.start_ns);
    say(line);
}

static void pause_clock(void)
{
    if (!paused && agent.pid) {
        if (timerfd_gettime(fds[CLOCK].fd, &left) < 0) fail(errno);
        set_clock(&(struct itimerspec){0});
        expired = left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0;
    }
    paused = true;
}

static void resume_clock(void)
{
    if (paused && agent.pid) set_clock(&left);
    paused = false;
}

/* False for `bye`. Whoever speaks anything else than the protocol is not the runner. */
static bool obey(const char *command)
{
    if (strcmp(command, "bye") == 0) return false;
    if (strcmp(command, "go") == 0 && !agent.pid) start();
    else if (strcmp(command, "pause") == 0) pause_clock();
    else if (strcmp(command, "resume") == 0) resume_clock();
    else if (strcmp(command, "kill") == 0 && agent.pid) kill_asked = true;
    else _exit(CONTROL_LOST);
    return true;
}

/* Reads what there is; false after `bye`. */
static bool hear(void)
{
    static char buffer[256];
    static size_t filled;
    ssize_t got = recv(fds[CONTROL].fd, buffer + filled, sizeof buffer - filled, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) _exit(agent.ended ? 0 : CONTROL_LOST);
    filled += (size_t)got;
    for (char *end; (end = memchr(buffer, '\n', filled)); ) {
        *end = '\0';
        bool more = obey(buffer);
        filled -= (size_t)(end + 1 - buffer);
        memmove(buffer, end + 1, filled);
        if (!more) return false;
    }
    if (filled == sizeof buffer) _exit(CONTROL_LOST);
    return true;
}

/* ---- the end ---- */

static void note(pid_t pid, int status)
{
    if (pid != agent.pid || agent.ended) return;
    agent.ended = true;
    agent.status = status;
    agent.end_ns = now_ns();
}

/* True when more may be waiting: a loop without a bound could be kept busy by an agent that forks for ever. */
static bool reap(void)
{
    struct signalfd_siginfo ignored;
    while (read(fds[CHILDREN].fd, &ignored, sizeof ignored) > 0) continue;
    for (int turn = 0; turn < REAPS_A_TURN; turn++) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) return false;
        note(pid, status);
    }
    return true;
}

static long long oom_kills(void)
{
    char text[1024];
    ssize_t got = pread(oom_counter, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    const char *found = strstr(text, "oom_kill ");
    return found ? atoll(found + strlen("oom_kill ")) : -1;
}

static void say_names(void)
{
    const struct asked_name *asked;
    for (int i = 0; (asked = names_asked(i)); i++) {
        char line[ASKED_NAME + 64];
        snprintf(line, sizeof line, "asked %lld %d %s\n", (long long)asked->first_ns, asked->count, asked->name);
        say(line);
    }
}

static void say_end(void)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    long long cpu_ms = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000LL +
                       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
    char exit_code[12] = "-", signal_number[12] = "-";
    bool signalled = WIFSIGNALED(agent.status);
    if (signalled) snprintf(signal_number, sizeof signal_number, "%d", WTERMSIG(agent.status));
    else snprintf(exit_code, sizeof exit_code, "%d", WEXITSTATUS(agent.status));
    /* An agent that ended by itself while the limit struck was in time. */
    bool timeout = expired && signalled && WTERMSIG(agent.status) == SIGKILL;
    char line[256];
    snprintf(line, sizeof line, "end exit=%s signal=%s timeout=%d oom=%lld cpu_ms=%lld rss_kb=%ld start=%lld end=%lld\n",
             exit_code, signal_number, timeout, oom_kills(), cpu_ms, used.ru_maxrss,
             (long long)agent.start_ns, (long long)agent.end_ns);
    say(line);
}

/* Kills and reaps everything, says what was `asked` and `end`, waits for `bye`. */
static _Noreturn void finish(void)
{
    pid_t pid;
    int status;
    do {
        kill(-1, SIGKILL);
        pid = waitpid(-1, &status, 0);
        if (pid > 0) note(pid, status);
    } while (pid > 0 || errno != ECHILD);
    if (fds[NAMES].fd >= 0) names_step(fds[NAMES].fd, agent.end_ns);
    say_names();
    say_end();
    int64_t until = now_ns() + BYE_MS * (NS_A_SECOND / 1000);
    for (int64_t rest; (rest = until - now_ns()) > 0; ) {
        int ready = poll(&fds[CONTROL], 1, (int)(rest / 1000000) + 1);
        if (ready > 0 && !hear()) break;
    }
    _exit(0);
}

/* ---- the beginning ---- */

static _Noreturn void usage(void)
{
    static const char text[] =
        "usage: init [--model SOCKET --port PORT] [--names PORT] --limit-ms N [--tty COLUMNSxROWS] -- ARGV...\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(UNFIT);
    _exit(UNFIT);
}

static int64_t number(const char *text, int64_t most, char stop, const char **rest)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end != stop || value < 1 || value > most) usage();
    if (rest) *rest = end + 1;
    return value;
}

static void parse(int argc, char **argv)
{
    int i = 1;
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--model") == 0) options.model_path = value;
        else if (strcmp(argv[i], "--port") == 0) options.port = (int)number(value, 65535, '\0', NULL);
        else if (strcmp(argv[i], "--names") == 0) options.names_port = (int)number(value, 65535, '\0', NULL);
        else if (strcmp(argv[i], "--limit-ms") == 0) options.limit_ms = number(value, INT64_MAX / 1000000, '\0', NULL);
        else if (strcmp(argv[i], "--tty") == 0) {
            options.tty.ws_col = (unsigned short)number(value, 1000, 'x', &value);
            options.tty.ws_row = (unsigned short)number(value, 1000, '\0', NULL);
        } else usage();
    }
    if (i + 1 >= argc || !options.limit_ms || !options.model_path != !options.port) usage();
    options.argv = argv + i + 1;
}

/* Version 2 has one tree with the container's own part at its root, version 1 a directory a controller. */
static void open_oom_counter(void)
{
    oom_counter = open("/sys/fs/cgroup/memory.events", O_RDONLY | O_CLOEXEC);
    if (oom_counter < 0) oom_counter = open("/sys/fs/cgroup/memory/memory.oom_control", O_RDONLY | O_CLOEXEC);
    if (oom_counter < 0) fail(errno);
    if (oom_kills() < 0) fail(ENOTSUP);
}

static void set_terminal(void)
{
    if (options.tty.ws_col && ioctl(STDIN_FILENO, TIOCSWINSZ, &options.tty) < 0) fail(errno);
    /* The terminal is PID 1's until it is given up; agent.c makes it the agent's. Fails where it was nobody's. */
    if (isatty(STDIN_FILENO)) ioctl(STDIN_FILENO, TIOCNOTTY);
}

static void prepare(void)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    fds[CONTROL].fd = unix_connect(CONTROL_SOCKET, 0);
    if (fds[CONTROL].fd < 0) _exit(CONTROL_LOST);
    fds[CHILDREN].fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fds[CHILDREN].fd < 0) fail(errno);
    fds[CLOCK].fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fds[CLOCK].fd < 0) fail(errno);
    left.it_value.tv_sec = options.limit_ms / 1000;
    left.it_value.tv_nsec = options.limit_ms % 1000 * 1000000;
    if (options.model_path) {
        fds[MODEL].fd = unix_connect(options.model_path, 0);
        if (fds[MODEL].fd < 0) fail(-fds[MODEL].fd);
        int error = -forward_open(options.port, options.model_path);
        if (error) fail(error);
    }
    /* Where an engine keeps the port for root, names are not seen, which `ready` then says. */
    if (options.names_port) fds[NAMES].fd = names_open(options.names_port);
    open_oom_counter();
    set_terminal();
}

/* Nothing is said on this connection; its end is what matters. */
static void check_model(void)
{
    char ignored[256];
    ssize_t got = recv(fds[MODEL].fd, ignored, sizeof ignored, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) _exit(MODEL_LOST);
}

int main(int argc, char **argv)
{
    if (getpid() != 1 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return UNFIT;
    parse(argc, argv);
    prepare();
    say(fds[NAMES].fd >= 0 ? "ready names\n" : "ready\n");
    for (bool more_to_reap = false;;) {
        int timeout_ms = -1;
        int forwarded = forward_wants(fds + FIXED_POLLFDS, &timeout_ms);
        if (more_to_reap) timeout_ms = 0;
        if (poll(fds, (nfds_t)(FIXED_POLLFDS + forwarded), timeout_ms) < 0) continue;
        if (fds[CONTROL].revents && !hear()) _exit(CONTROL_LOST);
        if (fds[MODEL].revents) check_model();
        if (fds[CHILDREN].revents || more_to_reap) more_to_reap = reap();
        if (fds[CLOCK].revents && !paused) expired = true;
        if (fds[NAMES].revents) names_step(fds[NAMES].fd, now_ns());
        if (agent.ended || kill_asked || expired) finish();
        forward_step(fds + FIXED_POLLFDS, forwarded);
    }
}
