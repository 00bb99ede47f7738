package tides;

import java.io.IOException;

/** An open connection to a tide gauge. */
public interface Gauge {
    /** The next reading, or null when there is none left. */
    Reading next() throws IOException;

    /** Ends the connection and lets the gauge drop what it handed over. Not to be called again, even if it fails. */
    void close() throws IOException;
}
