/* The four parts of cab's PID 1: init.c (the loop, the control line, the clock, the end), agent.c (starting argv),
 * forward.c (127.0.0.1:PORT to the gateway's Unix socket), names.c (the host names that were asked for). Everything
 * runs in one thread. */
#ifndef CAB_INIT_H
#define CAB_INIT_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

enum { FORWARD_SLOTS = 512, FORWARD_POLLFDS = 1 + 2 * FORWARD_SLOTS };

/* Starts argv in a session of its own. Returns its pid, or -errno when it could not be started. */
pid_t agent_start(char **argv);

/* Connects to a Unix socket; with `flags` SOCK_NONBLOCK, -EAGAIN means "later". Returns a descriptor or -errno. */
int unix_connect(const char *path, int flags);

/* Listens on 127.0.0.1:port. Returns 0 or -errno. */
int forward_open(int port, const char *path);

/* Fills `fds` with what the forwarder waits for, lowers *timeout_ms where it must look again; returns how many. */
int forward_wants(struct pollfd *fds, int *timeout_ms);

/* Moves what can be moved. `fds` as filled by forward_wants and answered by poll(). */
void forward_step(const struct pollfd *fds, int count);

enum { ASKED_NAMES = 64, ASKED_NAME = 254, ASKED_MOST = 999999999 };

struct asked_name {
    char name[ASKED_NAME];
    int64_t first_ns;
    int count; /* questions: an address of each family is one */
};

/* Listens for DNS questions on 127.0.0.1:port, UDP. Returns a descriptor or -errno. */
int names_open(int port);

/* Answers what was asked; the questions came at `at_ns`. */
void names_step(int fd, int64_t at_ns);

/* The names in the order of their first question, NULL past the last. */
const struct asked_name *names_asked(int index);

#endif
