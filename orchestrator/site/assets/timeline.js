/* Steps on a time line of spans. Pure functions: a span is {start, end, depth}, in seconds and from 0 on, and
   spans come in the order of their starts. */
"use strict";
(() => {
  const STEP = 0.1;   // seconds that ',' and '.' go

  /* The span that a moment lies in: the deepest, of those the one that began last. null in a gap. */
  function spanAt(spans, time) {
    let best = null;
    spans.forEach((span, index) => {
      if (span.start > time || span.end < time) return;
      if (best === null || span.depth >= spans[best].depth) best = index;
    });
    return best;
  }

  /* The span before or after one; from a gap the one that begins before or after the moment. */
  function step(spans, current, time, by) {
    if (!spans.length) return null;
    if (current !== null) return Math.min(spans.length - 1, Math.max(0, current + by));
    const later = spans.findIndex((span) => span.start > time);
    if (by > 0) return later < 0 ? spans.length - 1 : later;
    return Math.max(0, (later < 0 ? spans.length : later) - 1);
  }

  function clamp(time, seconds) { return Math.min(seconds, Math.max(0, time)); }

  /* A moment 100 ms before (by = -1) or after another, on whole milliseconds. */
  function nudge(time, by, seconds) { return clamp(Math.round((time + by * STEP) * 1000) / 1000, seconds); }

  /* Where playing has come to after `elapsed` real seconds, and whether that is the end. */
  function advance(time, elapsed, speed, seconds) {
    const then = clamp(time + elapsed * speed, seconds);
    return { time: then, ended: then >= seconds };
  }

  cab.timeline = { STEP, spanAt, step, clamp, nudge, advance };
})();
