# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
import random
import unittest

from driver import ask

SIZE_MAX = 2**64 - 1
FILLER = b"\xee"


class Queue:
    """A queue under test beside a plain list of bytes: each call checks that both say the same."""

    def __init__(self, test, capacity, number=0):
        self.test, self.capacity, self.number = test, capacity, number
        self.waiting = b""
        ask("init", number, capacity)
        self.check()

    def check(self):
        self.test.assertEqual(ask("length", self.number), len(self.waiting))
        self.test.assertEqual(ask("room", self.number), self.capacity - len(self.waiting))

    def write(self, data):
        fitting = data[: self.capacity - len(self.waiting)]
        self.test.assertEqual(ask("write", self.number, data.hex()), len(fitting))
        self.waiting += fitting
        self.check()

    def copied(self, wanted, count, answer):
        size = min(count, self.capacity)
        got, memory = answer
        self.test.assertEqual(got, len(wanted))
        self.test.assertEqual(bytes.fromhex(memory), wanted.ljust(size, FILLER))

    def peek(self, offset, count):
        self.copied(self.waiting[offset : offset + count], count, ask("peek", self.number, offset, count))
        self.check()

    def read(self, count):
        wanted, self.waiting = self.waiting[:count], self.waiting[count:]
        self.copied(wanted, count, ask("read", self.number, count))
        self.check()

    def drop(self, count):
        wanted = min(count, len(self.waiting))
        self.test.assertEqual(ask("drop", self.number, count), wanted)
        self.waiting = self.waiting[wanted:]
        self.check()

    def turned(self, start, length):
        """Fill an empty queue with `length` bytes, the oldest of which lies at `start` of its memory."""
        self.write(bytes(start) + b"#")
        self.drop(start)
        self.write(bytes(range(0x61, 0x60 + length)))
        return self


class StraightTest(unittest.TestCase):
    def test_first_in_first_out(self):
        queue = Queue(self, 16)
        for data in (b"north", b"-", b"east"):
            queue.write(data)
        for count in (3, 1, 4, 2):
            queue.read(count)

    def test_every_length(self):
        for capacity in range(1, 40):
            queue = Queue(self, capacity)
            queue.write(bytes(range(1, capacity + 1)))
            queue.read(capacity)

    def test_no_byte_more_than_fits(self):
        for capacity in range(9):
            queue = Queue(self, capacity)
            queue.write(b"monsoon-drift")
            queue.write(b"x")
            queue.read(SIZE_MAX)

    def test_nothing(self):
        queue = Queue(self, 4)
        queue.write(b"")
        queue.read(0)
        queue.read(3)
        queue.drop(3)
        queue.peek(0, 2)
        queue.write(b"ab")
        queue.peek(0, 0)
        queue.drop(0)
        queue.read(2)

    def test_capacity_0(self):
        queue = Queue(self, 0)
        queue.write(b"abc")
        queue.peek(0, 3)
        queue.read(SIZE_MAX)
        queue.drop(SIZE_MAX)

    def test_peek_at_each_place(self):
        queue = Queue(self, 8)
        queue.write(b"abcdef")
        for offset in (*range(9), SIZE_MAX):
            for count in (*range(9), SIZE_MAX):
                queue.peek(offset, count)

    def test_all_bytes(self):
        queue = Queue(self, 256)
        queue.write(bytes(range(256)))
        queue.read(256)

    def test_starting_again(self):
        Queue(self, 6).write(b"abcd")
        queue = Queue(self, 3)
        queue.write(b"xyz")
        queue.read(3)


class RoundTheEndTest(unittest.TestCase):
    """Every place of the oldest byte, with as many bytes waiting, for each count."""

    def each(self, capacity=6):
        for start in range(capacity):
            for length in range(1, capacity + 1):
                yield Queue(self, capacity).turned(start, length)

    def test_write(self):
        for count in range(8):
            for queue in self.each():
                queue.write(b"ABCDEFGH"[:count])
                queue.read(SIZE_MAX)

    def test_read(self):
        for count in range(8):
            for queue in self.each():
                queue.read(count)
                queue.read(SIZE_MAX)

    def test_peek(self):
        for queue in self.each():
            for offset in range(8):
                for count in (*range(8), SIZE_MAX):
                    queue.peek(offset, count)

    def test_drop(self):
        for count in (*range(8), SIZE_MAX):
            for queue in self.each():
                queue.drop(count)
                queue.write(b"ABC")
                queue.read(SIZE_MAX)


class LongRunTest(unittest.TestCase):
    def test_emptied_between_frames(self):
        queue = Queue(self, 11)
        for number in range(60):
            queue.write(bytes(range(number, number + 4)))
            queue.read(4)

    def test_never_empty(self):
        queue = Queue(self, 11)
        queue.write(b"ab")
        for number in range(60):
            queue.write(bytes(range(number, number + 4)))
            queue.read(4)

    def test_always_full(self):
        queue = Queue(self, 7)
        queue.write(b"gusting")
        for number in range(60):
            queue.read(number % 8)
            queue.write(bytes(range(number, number + 8)))

    def test_queues_do_not_share(self):
        queues = [Queue(self, 5 + number, number) for number in range(4)]
        source = random.Random(4)
        for _ in range(200):
            queue = source.choice(queues)
            queue.write(source.randbytes(source.randrange(4)))
            queue.peek(source.randrange(5), 3)
            queue.read(source.randrange(4))

    def test_random_calls(self):
        source = random.Random(20261128)
        for capacity in (1, 2, 3, 8, 13, 64, 1000):
            queue = Queue(self, capacity)
            for _ in range(300):
                count = source.choice([0, 1, source.randrange(capacity + 2), source.randrange(capacity + 2)])
                call = source.choice(["write", "write", "read", "drop", "peek"])
                if call == "write":
                    queue.write(source.randbytes(count))
                elif call == "peek":
                    queue.peek(source.randrange(capacity + 1), count)
                else:
                    getattr(queue, call)(count)


if __name__ == "__main__":
    unittest.main()
