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

  /* The span that begins next after a moment, or last before it. Of spans that begin at once each is a step:
     `current` says which of them it is. At either end it stays. */
  function step(spans, current, time, by) {
    const here = current !== null && spans[current].start === time ? current : null;
    if (by > 0) {
      const next = spans.findIndex((span, index) => span.start > time
        || (here !== null && span.start === time && index > here));
      return next < 0 ? current : next;
    }
    let before = null;
    spans.forEach((span, index) => {
      if (span.start < time || (here !== null && span.start === time && index < here)) before = index;
    });
    return before === null ? current : before;
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
