#undef NDEBUG
#include "ring.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned char storage[8];
static struct ring ring;

static void put(const char *text)
{
    assert(ring_write(&ring, (const unsigned char *)text, strlen(text)) == strlen(text));
}

static void take(const char *text)
{
    unsigned char got[sizeof storage];
    size_t count = strlen(text);
    assert(ring_read(&ring, got, count) == count);
    assert(memcmp(got, text, count) == 0);
}

static void test_first_in_first_out(void)
{
    ring_init(&ring, storage, sizeof storage);
    put("abc");
    put("de");
    take("ab");
    take("cde");
    assert(ring_length(&ring) == 0);
}

static void test_only_what_fits(void)
{
    ring_init(&ring, storage, sizeof storage);
    assert(ring_write(&ring, (const unsigned char *)"0123456789", 10) == 8);
    assert(ring_room(&ring) == 0);
    take("01234567");
}

static void test_looking_ahead(void)
{
    unsigned char got[2];
    ring_init(&ring, storage, sizeof storage);
    put("abcd");
    assert(ring_peek(&ring, 1, got, 2) == 2);
    assert(memcmp(got, "bc", 2) == 0);
    assert(ring_peek(&ring, 4, got, 2) == 0);
    assert(ring_length(&ring) == 4);
}

static void test_dropping(void)
{
    ring_init(&ring, storage, sizeof storage);
    put("abcd");
    assert(ring_drop(&ring, 3) == 3);
    assert(ring_drop(&ring, SIZE_MAX) == 1);
    assert(ring_drop(&ring, 1) == 0);
}

static void test_one_frame_after_the_other(void)
{
    ring_init(&ring, storage, sizeof storage);
    for (int round = 0; round < 20; round++) {
        put("frame");
        take("frame");
    }
}

int main(void)
{
    test_first_in_first_out();
    test_only_what_fits();
    test_looking_ahead();
    test_dropping();
    test_one_frame_after_the_other();
    puts("ok");
}
