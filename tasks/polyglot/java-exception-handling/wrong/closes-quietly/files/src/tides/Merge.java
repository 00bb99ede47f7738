package tides;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.PriorityQueue;

/** Merges the readings of several gauges. See README.md for what is promised when one of them fails. */
public final class Merge {
    private Merge() {}

    /** The readings of all gauges in order of time. */
    public static List<Reading> merge(List<? extends Opener> openers) throws IOException {
        Deque<Gauge> open = new ArrayDeque<>();
        try {
            for (Opener opener : openers) {
                open.addLast(opener.open());
            }
            return readAll(List.copyOf(open));
        } finally {
            while (!open.isEmpty()) {
                closeQuietly(open.removeLast());
            }
        }
    }

    /** A gauge that does not close must not hide what went wrong before. */
    private static void closeQuietly(Gauge gauge) {
        try {
            gauge.close();
        } catch (IOException | RuntimeException ignored) {
            // There is nothing more to be read from it.
        }
    }

    private static List<Reading> readAll(List<Gauge> gauges) throws IOException {
        PriorityQueue<Head> heads =
                new PriorityQueue<>(Comparator.comparingLong(Head::time).thenComparingInt(Head::rank));
        for (int rank = 0; rank < gauges.size(); rank++) {
            advance(gauges.get(rank), rank, heads);
        }
        List<Reading> merged = new ArrayList<>();
        while (!heads.isEmpty()) {
            Head first = heads.remove();
            merged.add(first.reading());
            advance(gauges.get(first.rank()), first.rank(), heads);
        }
        return merged;
    }

    private static void advance(Gauge gauge, int rank, PriorityQueue<Head> heads) throws IOException {
        Reading reading = gauge.next();
        if (reading != null) {
            heads.add(new Head(reading, rank));
        }
    }

    /** The reading that a gauge is at, and the gauge's place among the others. */
    private record Head(Reading reading, int rank) {
        long time() {
            return reading.time();
        }
    }
}
