/* The three parts of cab's PID 1: init.c (the loop, the control line, the clock, the end), agent.c (starting argv),
 * forward.c (127.0.0.1:PORT to the gateway's Unix socket). Everything runs in one thread. */
#ifndef CAB_INIT_H
#define CAB_INIT_H

#include <poll.h>
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

#endif
