/* A name server that knows no name: it keeps which were asked for, and says to each at once that it cannot tell.
 *
 * SERVFAIL and not NXDOMAIN, since that is what a resolver makes of having no network: "temporary failure", not "no
 * such host". The questions are the agent's: what is no host name is answered and not kept. */
#include "init.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEADER = 12, TYPE_AND_CLASS = 4, MESSAGE = 512, LABEL = 63, QUESTIONS_A_TURN = 16 };
enum { RESPONSE = 0x80, OPCODE_AND_RD = 0x79, RECURSION_AVAILABLE = 0x80, SERVFAIL = 2 };

static struct asked_name asked[ASKED_NAMES];
static int kept;

int names_open(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((in_port_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

static char host_character(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ? (char)c : '\0';
}

/* Where the question ends, 0 where it is none. `name` is empty where it is no host name. */
static size_t read_question(const unsigned char *message, size_t size, char name[ASKED_NAME])
{
    size_t at = HEADER, length = 0;
    int host = 1;
    while (at < size && message[at]) {
        size_t label = message[at++];
        if (label > LABEL || label > size - at || length + label + 2 > ASKED_NAME) return 0;
        if (length) name[length++] = '.';
        for (; label; label--) {
            char c = host_character(message[at++]);
            if (!c) host = 0;
            name[length++] = c;
        }
    }
    name[host ? length : 0] = '\0';
    return at + 1 + TYPE_AND_CLASS <= size ? at + 1 + TYPE_AND_CLASS : 0;
}

static void keep(const char *name, int64_t at_ns)
{
    int i = 0;
    while (i < kept && strcmp(asked[i].name, name) != 0) i++;
    if (i == ASKED_NAMES) return;
    if (i == kept) {
        kept++;
        strcpy(asked[i].name, name);
        asked[i].first_ns = at_ns;
    }
    if (asked[i].count < ASKED_MOST) asked[i].count++;
}

void names_step(int fd, int64_t at_ns)
{
    for (int turn = 0; turn < QUESTIONS_A_TURN; turn++) {
        unsigned char message[MESSAGE];
        char name[ASKED_NAME];
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        ssize_t got = recvfrom(fd, message, sizeof message, 0, (struct sockaddr *)&from, &size);
        if (got < 0) return;
        if (got < HEADER || message[2] & RESPONSE || message[4] || message[5] != 1) continue;
        size_t end = read_question(message, (size_t)got, name);
        if (!end) continue;
        if (name[0]) keep(name, at_ns);
        message[2] = (unsigned char)(RESPONSE | (message[2] & OPCODE_AND_RD));
        message[3] = RECURSION_AVAILABLE | SERVFAIL;
        memset(message + 6, 0, HEADER - 6);
        sendto(fd, message, end, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from, size);
    }
}

const struct asked_name *names_asked(int index) { return index < kept ? &asked[index] : NULL; }
