/* Starts argv as a container's own process: default signals, a session and terminal of its own, no descriptors of
 * PID 1, and no way to weaken PID 1, which runs as the same uid. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { NATIVE = AUDIT_ARCH_X86_64, COMPAT = AUDIT_ARCH_I386, COMPAT_PRLIMIT64 = 340, COMPAT_SCHED_SETATTR = 351 };
#elif defined(__aarch64__)
enum { NATIVE = AUDIT_ARCH_AARCH64, COMPAT = AUDIT_ARCH_ARM, COMPAT_PRLIMIT64 = 369, COMPAT_SCHED_SETATTR = 380 };
#else
#error "state the system call numbers of this architecture's 32-bit twin"
#endif
enum { X32_BIT = 0x40000000 };

struct refusal {
    unsigned arch, call, argument; /* the call is refused where this argument is 1 */
};

/* Signals from inside cannot reach PID 1, and it is undumpable; what is left to a process of the same uid is its
 * resource limits (RLIMIT_CPU would have the kernel kill it) and its scheduling (an idle-class PID 1 keeps no limit). */
static const struct refusal refusals[] = {
    {NATIVE, SYS_prlimit64, 0},
    {NATIVE, SYS_setpriority, 1},
    {NATIVE, SYS_sched_setparam, 0},
    {NATIVE, SYS_sched_setscheduler, 0},
    {NATIVE, SYS_sched_setaffinity, 0},
    {NATIVE, SYS_sched_setattr, 0},
    {COMPAT, COMPAT_PRLIMIT64, 0},
    {COMPAT, 97, 1},  /* setpriority */
    {COMPAT, 154, 0}, /* sched_setparam */
    {COMPAT, 156, 0}, /* sched_setscheduler */
    {COMPAT, 241, 0}, /* sched_setaffinity */
    {COMPAT, COMPAT_SCHED_SETATTR, 0},
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0], STEPS = 8 };

static int guard_pid_1(void)
{
    struct sock_filter code[STEPS * REFUSALS + 1];
    unsigned n = 0;
    for (unsigned i = 0; i < REFUSALS; i++) {
        const struct refusal *r = &refusals[i];
        unsigned low_word = offsetof(struct seccomp_data, args) + r->argument * 8; /* little-endian */
        const struct sock_filter steps[STEPS] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->arch, 0, 6),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(unsigned)X32_BIT),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->call, 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_word),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        };
        for (unsigned step = 0; step < STEPS; step++) code[n++] = steps[step];
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* When memory runs out the agent's processes go first, however small: PID 1 has to tell the tale. An agent may undo
 * this, which only makes its container's end an engine fault; so a refusal here is no error either. */
static void volunteer_for_oom(void)
{
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* /proc/self belongs to root until then; nothing else runs yet */
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, "100", 3) != 3) errno = 0;
    close(fd);
}

static int prepare(void)
{
    /* The C library keeps a few real-time signals to itself and refuses to reset them; one that was ignored where
     * the engine was started would stay ignored. All zero is the kernel's SIG_DFL. */
    const unsigned long by_default[4] = {0};
    for (int number = 1; number < NSIG; number++) syscall(SYS_rt_sigaction, number, by_default, NULL, 8);
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) < 0) return -1;
    if (setsid() < 0) return -1;
    if (isatty(STDIN_FILENO) && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0) return -1;
    volunteer_for_oom();
    return guard_pid_1();
}

pid_t agent_start(char **argv)
{
    int report[2]; /* closed by a successful exec, else it carries errno */
    if (pipe2(report, O_CLOEXEC) < 0) return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        if (prepare() == 0) execvp(argv[0], argv);
        int error = errno;
        if (write(report[1], &error, sizeof error) != sizeof error) _exit(126);
        _exit(127);
    }
    int error = pid < 0 ? errno : 0;
    close(report[1]);
    int carried;
    ssize_t got;
    do got = read(report[0], &carried, sizeof carried);
    while (got < 0 && errno == EINTR);
    if (got == sizeof carried) error = carried;
    close(report[0]);
    return error ? -error : pid;
}
