// cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora

import java.io.BufferedReader;
import java.io.EOFException;
import java.io.FileReader;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import tides.Gauge;
import tides.Merge;
import tides.Opener;
import tides.Reading;

/**
 * Merges gauges as it is told to, and answers what was called and what came out.
 *
 * <p>A request is ["merge","GAUGE",…]. A gauge is its name and words: a reading such as `30:1500`, or a call that fails,
 * `open=KIND`, `read3=KIND` (the fourth call of `next`) or `close=KIND`. The kind `same` is what the gauge threw before.
 */
public final class Driver {
    private final List<String> log = new ArrayList<>();
    private final Map<Throwable, String> planned = new IdentityHashMap<>();

    public static void main(String[] args) throws IOException {
        try (BufferedReader requests = new BufferedReader(new FileReader("/dev/fd/3"));
                Writer answers = new FileWriter("/dev/fd/4")) {
            for (String line; (line = requests.readLine()) != null; ) {
                List<String> request = List.of(line.substring(2, line.length() - 2).split("\",\""));
                answers.write("{\"ok\":" + new Driver().merge(request.subList(1, request.size())) + "}\n");
                answers.flush();
            }
        }
    }

    private String merge(List<String> gauges) {
        List<Opener> openers = gauges.stream().map(said -> (Opener) new Fake(said.split(" "))).toList();
        String readings = "null";
        String thrown = "null";
        try {
            readings = array(Merge.merge(openers).stream().map(one -> "[" + one.time() + "," + one.level() + "]"));
        } catch (Throwable failure) {
            thrown = described(failure);
        }
        String calls = array(log.stream().map(Driver::quoted));
        return "{\"log\":" + calls + ",\"readings\":" + readings + ",\"thrown\":" + thrown + "}";
    }

    /** Which planned exception it is, by identity, and what is attached to it. */
    private String described(Throwable failure) {
        String name = planned.getOrDefault(failure, "unplanned " + failure.getClass().getName());
        return "[" + quoted(name) + "," + array(Stream.of(failure.getSuppressed()).map(this::described)) + "]";
    }

    private static String array(Stream<String> parts) {
        return parts.collect(Collectors.joining(",", "[", "]"));
    }

    private static String quoted(String plain) {
        return "\"" + plain + "\"";
    }

    private final class Fake implements Opener, Gauge {
        private final String[] words;
        private final List<Reading> readings = new ArrayList<>();
        private int reads = 0;
        private Throwable last;

        Fake(String[] words) {
            this.words = words;
            for (String word : words) {
                String[] parts = word.split(":");
                if (parts.length == 2) {
                    readings.add(new Reading(Long.parseLong(parts[0]), Integer.parseInt(parts[1])));
                }
            }
        }

        @Override
        public Gauge open() throws IOException {
            call("open", "open");
            return this;
        }

        @Override
        public Reading next() throws IOException {
            int place = reads++;
            call("read", "read" + place);
            return place < readings.size() ? readings.get(place) : null;
        }

        @Override
        public void close() throws IOException {
            call("close", "close");
        }

        private void call(String operation, String moment) throws IOException {
            log.add(operation + " " + words[0]);
            for (String word : words) {
                if (word.startsWith(moment + "=")) {
                    log.add("failed");
                    last = failure(word.substring(moment.length() + 1), words[0] + " " + operation);
                    raise(last);
                }
            }
        }

        private Throwable failure(String kind, String name) {
            Throwable failure =
                    switch (kind) {
                        case "same" -> last;
                        case "io" -> new IOException(name);
                        case "eof" -> new EOFException(name);
                        case "state" -> new IllegalStateException(name);
                        case "error" -> new AssertionError(name);
                        default -> throw new IllegalArgumentException(kind);
                    };
            planned.putIfAbsent(failure, name);
            return failure;
        }
    }

    private static void raise(Throwable failure) throws IOException {
        if (failure instanceof IOException checked) {
            throw checked;
        }
        if (failure instanceof RuntimeException unchecked) {
            throw unchecked;
        }
        throw (Error) failure;
    }
}
