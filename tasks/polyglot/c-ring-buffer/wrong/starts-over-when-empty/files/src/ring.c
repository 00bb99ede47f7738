#include "ring.h"

#include <string.h>

static size_t smaller(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* Where the byte at `offset` lies. */
static size_t place(const struct ring *ring, size_t offset)
{
    size_t to_end = ring->capacity - ring->start;
    return offset < to_end ? ring->start + offset : offset - to_end;
}

void ring_init(struct ring *ring, unsigned char *storage, size_t capacity)
{
    ring->storage = storage;
    ring->capacity = capacity;
    ring->start = 0;
    ring->length = 0;
}

size_t ring_length(const struct ring *ring)
{
    return ring->length;
}

size_t ring_room(const struct ring *ring)
{
    return ring->capacity - ring->length;
}

size_t ring_write(struct ring *ring, const unsigned char *from, size_t count)
{
    count = smaller(count, ring_room(ring));
    if (count == 0)
        return 0;
    size_t at = place(ring, ring->length);
    size_t first = smaller(count, ring->capacity - at);
    memcpy(ring->storage + at, from, first);
    memcpy(ring->storage, from, count - first);
    ring->length += count;
    return count;
}

size_t ring_peek(const struct ring *ring, size_t offset, unsigned char *to, size_t count)
{
    if (offset >= ring->length)
        return 0;
    count = smaller(count, ring->length - offset);
    size_t at = ring->start + offset;
    size_t first = smaller(count, ring->capacity - at);
    memcpy(to, ring->storage + at, first);
    memcpy(to + first, ring->storage, count - first);
    return count;
}

size_t ring_read(struct ring *ring, unsigned char *to, size_t count)
{
    return ring_drop(ring, ring_peek(ring, 0, to, count));
}

size_t ring_drop(struct ring *ring, size_t count)
{
    count = smaller(count, ring->length);
    ring->start = place(ring, count);
    ring->length -= count;
    if (ring->length == 0)
        ring->start = 0;
    return count;
}
