/* A queue of bytes in memory of the caller's. See README.md. */
#ifndef RING_H
#define RING_H

#include <stddef.h>

struct ring {
    unsigned char *storage;
    size_t capacity;
    size_t start;  /* where the oldest byte lies */
    size_t length; /* how many bytes are waiting */
};

void ring_init(struct ring *ring, unsigned char *storage, size_t capacity);
size_t ring_length(const struct ring *ring);
size_t ring_room(const struct ring *ring);
size_t ring_write(struct ring *ring, const unsigned char *from, size_t count);
size_t ring_peek(const struct ring *ring, size_t offset, unsigned char *to, size_t count);
size_t ring_read(struct ring *ring, unsigned char *to, size_t count);
size_t ring_drop(struct ring *ring, size_t count);

#endif
