/* Offers the gateway's Unix socket as 127.0.0.1:PORT.
 *
 * Each connection is two flows with one fixed buffer each: a flow reads only when its buffer is empty (back-pressure),
 * and passes on the end of its input as a half-close once the buffer is drained. Nothing here blocks or allocates:
 * whatever an agent does to its connections, the control line and the clock are served in the same loop. */
#include "init.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUFFER = 16384, BACKLOG = 4096, ACCEPTS_A_TURN = 16, RETRY_MS = 2, OTHER_FDS = 32 };

struct flow {
    char data[BUFFER];
    size_t start, end;
    bool eof;    /* no more will be read */
    bool shut;   /* the other side was told so */
    bool broken; /* the other side takes no more: what comes is dropped */
};

struct connection {
    bool used, connected;
    int client, server;
    struct flow up, down; /* client to server, server to client */
};

static struct connection connections[FORWARD_SLOTS];
static int slots, top; /* top: one more than the highest slot in use */
static int listener = -1;
static bool out_of_descriptors;
static const char *server_path;

int unix_connect(const char *path, int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0) return -errno;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

int forward_open(int port, const char *path)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0) return -errno;
    rlim_t fit = files.rlim_cur > OTHER_FDS ? (files.rlim_cur - OTHER_FDS) / 2 : 0;
    slots = fit < FORWARD_SLOTS ? (int)fit : FORWARD_SLOTS;
    server_path = path;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((in_port_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0) return -errno;
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0) return -errno;
    if (listen(listener, BACKLOG) < 0) return -errno;
    return 0;
}

static bool empty(const struct flow *flow) { return flow->start == flow->end; }

static int free_slot(void)
{
    for (int i = 0; i < slots; i++)
        if (!connections[i].used) return i;
    return -1;
}

static void drop(struct connection *c)
{
    close(c->client);
    if (c->connected) close(c->server);
    c->used = false;
    while (top > 0 && !connections[top - 1].used) top--;
}

/* The gateway's backlog may be full; a Unix socket then says EAGAIN and has to be asked again. */
static void connect_server(struct connection *c)
{
    int fd = unix_connect(server_path, SOCK_NONBLOCK);
    if (fd >= 0) {
        c->server = fd;
        c->connected = true;
    } else if (fd != -EAGAIN && fd != -EMFILE && fd != -ENFILE) {
        drop(c);
    }
}

static void accept_clients(void)
{
    for (int turn = 0; turn < ACCEPTS_A_TURN; turn++) {
        int slot = free_slot();
        if (slot < 0) return;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            out_of_descriptors = errno != EAGAIN && errno != ECONNABORTED && errno != EINTR;
            return;
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a model's answer is streamed in small pieces */
        struct connection *c = &connections[slot];
        c->used = true;
        c->connected = false;
        c->client = fd;
        c->up.start = c->up.end = c->down.start = c->down.end = 0;
        c->up.eof = c->up.shut = c->up.broken = false;
        c->down.eof = c->down.shut = c->down.broken = false;
        if (slot >= top) top = slot + 1;
        connect_server(c);
    }
}

static bool again(void) { return errno == EAGAIN || errno == EINTR; }

/* Moves one buffer's worth. Sets eof when reading failed, broken when writing did. */
static void move(struct flow *flow, int from, int to)
{
    if (empty(flow) && !flow->eof) {
        ssize_t got = recv(from, flow->data, BUFFER, 0);
        if (got == 0 || (got < 0 && !again())) flow->eof = true;
        flow->start = 0;
        flow->end = got > 0 && !flow->broken ? (size_t)got : 0;
    }
    if (!empty(flow)) {
        ssize_t put = send(to, flow->data + flow->start, flow->end - flow->start, MSG_NOSIGNAL);
        if (put > 0) flow->start += (size_t)put;
        if (put < 0 && !again()) {
            flow->broken = true;
            flow->start = flow->end = 0;
        }
    }
    if (flow->eof && empty(flow) && !flow->shut) {
        flow->shut = true;
        shutdown(to, SHUT_WR);
    }
}

/* A gateway that stops reading may still be answering (413, say), so a broken upward flow is read on and dropped:
 * closing with unread input would reset the connection and take the answer with it. A client that takes no more
 * is gone, and both ends are closed, so that the gateway can stop. */
static void pump(struct connection *c)
{
    move(&c->up, c->client, c->server);
    move(&c->down, c->server, c->client);
    if (c->down.broken || (c->up.shut && c->down.shut)) drop(c);
}

int forward_wants(struct pollfd *fds, int *timeout_ms)
{
    if (listener < 0) return 0;
    bool look_again = out_of_descriptors;
    bool listening = !out_of_descriptors && free_slot() >= 0;
    fds[0] = (struct pollfd){.fd = listening ? listener : -1, .events = POLLIN};
    for (int i = 0; i < top; i++) {
        const struct connection *c = &connections[i];
        short client = 0, server = 0;
        if (c->used && c->connected) {
            if (empty(&c->up) && !c->up.eof) client |= POLLIN;
            if (!empty(&c->down)) client |= POLLOUT;
            if (empty(&c->down) && !c->down.eof) server |= POLLIN;
            if (!empty(&c->up)) server |= POLLOUT;
        } else if (c->used) {
            look_again = true;
        }
        /* A descriptor nothing is wanted of is left out: poll() would report its hang-up for ever. */
        fds[1 + 2 * i] = (struct pollfd){.fd = client ? c->client : -1, .events = client};
        fds[2 + 2 * i] = (struct pollfd){.fd = server ? c->server : -1, .events = server};
    }
    if (look_again) *timeout_ms = RETRY_MS;
    out_of_descriptors = false;
    return 1 + 2 * top;
}

void forward_step(const struct pollfd *fds, int count)
{
    if (count == 0) return;
    for (int i = 0; 2 + 2 * i < count; i++) {
        struct connection *c = &connections[i];
        if (!c->used) continue;
        if (!c->connected) connect_server(c);
        else if (fds[1 + 2 * i].revents || fds[2 + 2 * i].revents) pump(c);
    }
    if (fds[0].revents) accept_clients();
}
