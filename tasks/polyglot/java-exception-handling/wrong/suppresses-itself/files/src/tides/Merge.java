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
            List<Reading> merged = readAll(List.copyOf(open));
            while (!open.isEmpty()) {
                open.removeLast().close();
            }
            return merged;
        } catch (Throwable first) {
            closeAfter(first, open);
            throw first;
        }
    }

    /** Closes what is left open once something has failed. */
    private static void closeAfter(Throwable first, Deque<Gauge> open) {
        while (!open.isEmpty()) {
            try {
                open.removeLast().close();
            } catch (Throwable later) {
                first.addSuppressed(later);
            }
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
