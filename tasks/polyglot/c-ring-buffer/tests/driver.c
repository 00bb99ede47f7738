/* cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora */
/* Calls the queue for the tests: a request a line from descriptor 3, an answer a line to 4. Bytes are hexadecimal.
   All memory is exactly as large as the call needs, so that the address sanitizer sees a byte too many. */
#include "ring.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RINGS = 4, NAME_BYTES = 16, LINE_BYTES = 1 << 16, FILLER = 0xee };

static struct ring rings[RINGS];
static unsigned char *storages[RINGS];
static char line[LINE_BYTES];

/* Leaks are the driver's own affair, and looking for them needs rights that a container may lack. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static void stop(const char *why)
{
    fprintf(stderr, "driver: %s: %s\n", why, line);
    exit(2);
}

static size_t number(const char **rest)
{
    char *end;
    uintmax_t value = **rest == ',' ? strtoumax(*rest + 1, &end, 10) : 0;
    if (**rest != ',' || end == *rest + 1)
        stop("no number");
    *rest = end;
    return value;
}

/* The bytes of a quoted argument, in memory of their own. */
static unsigned char *bytes(const char *rest, size_t *count)
{
    if (strncmp(rest, ",\"", 2) != 0)
        stop("no bytes");
    *count = strcspn(rest + 2, "\"") / 2;
    unsigned char *value = malloc(*count);
    for (size_t index = 0; index < *count; index++)
        if (sscanf(rest + 2 + 2 * index, "%2hhx", &value[index]) != 1)
            stop("no bytes");
    return value;
}

static void init(size_t which, size_t capacity)
{
    free(storages[which]);
    storages[which] = malloc(capacity);
    ring_init(&rings[which], storages[which], capacity);
}

static size_t write_bytes(struct ring *ring, const char *rest)
{
    size_t count;
    unsigned char *from = bytes(rest, &count);
    size_t written = ring_write(ring, from, count);
    free(from);
    return written;
}

/* Answers with what the call returned, and all the memory that it was given: what it did not fill is filler. */
static void answer_copy(FILE *answers, struct ring *ring, const char *operation, const char *rest)
{
    int peek = strcmp(operation, "peek") == 0;
    size_t offset = peek ? number(&rest) : 0;
    size_t count = number(&rest);
    size_t size = count < ring->capacity ? count : ring->capacity;
    unsigned char *to = malloc(size);
    memset(to, FILLER, size);
    size_t copied = peek ? ring_peek(ring, offset, to, count) : ring_read(ring, to, count);
    fprintf(answers, "{\"ok\":[%zu,\"", copied);
    for (size_t index = 0; index < size; index++)
        fprintf(answers, "%02x", to[index]);
    fputs("\"]}\n", answers);
    free(to);
}

static void answer(FILE *answers)
{
    char operation[NAME_BYTES];
    int length = 0;
    if (sscanf(line, "[\"%15[a-z]\"%n", operation, &length) != 1 || length == 0)
        stop("no operation");
    const char *rest = line + length;
    size_t which = number(&rest);
    if (which >= RINGS)
        stop("no such queue");
    struct ring *ring = &rings[which];
    size_t value = 0;
    if (strcmp(operation, "peek") == 0 || strcmp(operation, "read") == 0) {
        answer_copy(answers, ring, operation, rest);
        return;
    }
    if (strcmp(operation, "init") == 0)
        init(which, number(&rest));
    else if (strcmp(operation, "write") == 0)
        value = write_bytes(ring, rest);
    else if (strcmp(operation, "drop") == 0)
        value = ring_drop(ring, number(&rest));
    else if (strcmp(operation, "length") == 0)
        value = ring_length(ring);
    else if (strcmp(operation, "room") == 0)
        value = ring_room(ring);
    else
        stop("no such operation");
    fprintf(answers, "{\"ok\":%zu}\n", value);
}

int main(void)
{
    FILE *requests = fopen("/dev/fd/3", "r");
    FILE *answers = fopen("/dev/fd/4", "w");
    if (requests == NULL || answers == NULL)
        stop("descriptors 3 and 4 are not open");
    while (fgets(line, sizeof line, requests) != NULL) {
        answer(answers);
        fflush(answers);
    }
    return 0;
}
