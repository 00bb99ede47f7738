import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import tides.Gauge;
import tides.Merge;
import tides.Opener;
import tides.Reading;

/** Prints a line for each test and ends with 1 when one failed. */
public final class MergeTest {
    private static int failed = 0;

    public static void main(String[] args) {
        merges();
        closesInOppositeOrder();
        closesAllWhenAReadFails();
        closesAllWhenOneCannotBeOpened();
        saysWhatFailedFirst();
        System.exit(failed == 0 ? 0 : 1);
    }

    private static void merges() {
        List<String> log = new ArrayList<>();
        Opener east = new Fake("east", log, 10, 30, 30);
        Opener west = new Fake("west", log, 20, 30);
        Result result = merge(east, west);
        List<Long> times = result.readings == null ? null : result.readings.stream().map(Reading::time).toList();
        check("merges", times, List.of(10L, 20L, 30L, 30L, 30L));
    }

    private static void closesInOppositeOrder() {
        List<String> log = new ArrayList<>();
        merge(new Fake("a", log, 1), new Fake("b", log, 2), new Fake("c", log));
        check("closes in opposite order", log, List.of("open a", "open b", "open c", "close c", "close b", "close a"));
    }

    private static void closesAllWhenAReadFails() {
        List<String> log = new ArrayList<>();
        merge(new Fake("a", log, 1), new Fake("b", log, 2).failing("read"));
        check("closes all when a read fails", log, List.of("open a", "open b", "close b", "close a"));
    }

    private static void closesAllWhenOneCannotBeOpened() {
        List<String> log = new ArrayList<>();
        merge(new Fake("a", log, 1), new Fake("b", log, 2).failing("open"), new Fake("c", log, 3));
        check("closes all when one cannot be opened", log, List.of("open a", "open b", "close a"));
    }

    private static void saysWhatFailedFirst() {
        List<String> log = new ArrayList<>();
        Result result = merge(new Fake("a", log, 1).failing("close"), new Fake("b", log, 2).failing("read"));
        check("says what failed first", String.valueOf(result.failure), "java.io.IOException: b: cannot read");
    }

    private static void check(String name, Object got, Object wanted) {
        boolean good = wanted.equals(got);
        System.out.println((good ? "ok   " : "FAIL ") + name + (good ? "" : ": got " + got + ", wanted " + wanted));
        failed += good ? 0 : 1;
    }

    private record Result(List<Reading> readings, Exception failure) {}

    private static Result merge(Opener... openers) {
        try {
            return new Result(Merge.merge(List.of(openers)), null);
        } catch (Exception failure) {
            return new Result(null, failure);
        }
    }

    /** A gauge that logs when it is opened and closed, and fails at one kind of call if told to. */
    private static final class Fake implements Opener, Gauge {
        private final String name;
        private final List<String> log;
        private final Iterator<Reading> readings;
        private String failing = "nothing";

        Fake(String name, List<String> log, long... times) {
            this.name = name;
            this.log = log;
            this.readings = Arrays.stream(times).mapToObj(time -> new Reading(time, 1500)).iterator();
        }

        Fake failing(String kind) {
            failing = kind;
            return this;
        }

        @Override
        public Gauge open() throws IOException {
            log.add("open " + name);
            failIf("open");
            return this;
        }

        @Override
        public Reading next() throws IOException {
            failIf("read");
            return readings.hasNext() ? readings.next() : null;
        }

        @Override
        public void close() throws IOException {
            log.add("close " + name);
            failIf("close");
        }

        private void failIf(String kind) throws IOException {
            if (kind.equals(failing)) {
                throw new IOException(name + ": cannot " + kind);
            }
        }
    }
}
