package tides;

import java.io.IOException;

/** Knows where a gauge is and opens a connection to it. */
@FunctionalInterface
public interface Opener {
    Gauge open() throws IOException;
}
