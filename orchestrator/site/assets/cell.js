/* The trace of a cell, replayed: a slider over the drawing, buttons, and what is known of the current span. */
"use strict";
(() => {
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  function spansOf(table) {
    return [...table.tBodies[0].rows].map((row) => ({
      row,
      id: row.dataset.id,
      name: row.cells[0].textContent.trim(),
      kind: row.cells[1].textContent.trim(),
      start: Number(row.dataset.start),
      end: Number(row.dataset.end),
      depth: Number(row.dataset.depth),
      attributes: row.querySelector(".attributes"),
    }));
  }

  function replay(box) {
    const { spanAt, step, nudge, advance, clamp } = cab.timeline;
    const spans = spansOf(document.getElementById("span-table"));
    const seconds = Number(box.dataset.seconds);
    const slider = document.getElementById("timeline");
    const cursor = document.getElementById("timeline-at");
    const rects = [...slider.querySelectorAll("[data-span]")];
    const height = slider.querySelector("svg").viewBox.baseVal.height;
    const play = document.getElementById("trace-play");
    const speed = document.getElementById("trace-speed");
    const clock = document.getElementById("trace-time");
    const panel = document.getElementById("span-now");
    let time = 0, current = null, frame = 0, last = 0;

    function told(index) {
      if (index === null) return `${time.toFixed(2)} s, between two spans`;
      const span = spans[index];
      return `${time.toFixed(2)} s, ${span.kind} ${span.name}, took ${(span.end - span.start).toFixed(2)} s`;
    }

    function describe() {
      if (current === null) {
        panel.replaceChildren(cab.el("p", { class: "muted" }, "Between two spans."));
        return;
      }
      const span = spans[current];
      panel.replaceChildren(
        cab.el("h3", {}, span.name),
        cab.el("p", {}, `${span.kind}, from ${span.start.toFixed(3)} s to ${span.end.toFixed(3)} s: `
          + `${(span.end - span.start).toFixed(3)} s`),
        span.attributes ? span.attributes.cloneNode(true) : cab.el("p", { class: "muted" }, "No attributes."),
      );
    }

    function mark(index) {
      if (index === current) return;
      for (const [at, on] of [[current, false], [index, true]]) {
        if (at === null) continue;
        rects[at].classList.toggle("current", on);
        spans[at].row.classList.toggle("current", on);
      }
      current = index;
      describe();
    }

    /* Go to a moment; the span is the one given, else the one that lies there. */
    function go(to, index = spanAt(spans, to)) {
      time = clamp(to, seconds);
      mark(index);
      cursor.setAttribute("d", `M${(1000 * time / seconds).toFixed(2)} 0V${height}`);
      clock.textContent = `${time.toFixed(2)} s`;
      slider.setAttribute("aria-valuenow", time.toFixed(2));
      slider.setAttribute("aria-valuetext", told(current));
      box.dispatchEvent(new CustomEvent("cab:time", { detail: time }));   // for what plays in step
    }

    /* What a person did, and not the clock: said aloud where the slider itself does not say it. */
    function moved(to, index) {
      go(to, index);
      if (document.activeElement !== slider) cab.announce(told(current));
      cab.state.set(current === null ? {} : { span: spans[current].id });
    }

    function bySpan(by) {
      const index = step(spans, current, time, by);
      if (index !== null) moved(spans[index].start, index);
    }

    function stop() {
      cancelAnimationFrame(frame);
      frame = 0;
      play.textContent = "Play";
      play.setAttribute("aria-pressed", "false");
    }

    function tick(now) {
      const then = advance(time, (now - last) / 1000, Number(speed.value), seconds);
      const index = spanAt(spans, then.time);
      // Without motion the picture changes only where a span does.
      if (!still.matches || index !== current || then.ended) {
        last = now;
        go(then.time, index);
      }
      if (then.ended) stop();
      else frame = requestAnimationFrame(tick);
    }

    function toggle() {
      if (frame) { stop(); cab.announce(`Paused at ${told(current)}`); return; }
      if (time >= seconds) go(0);
      play.textContent = "Pause";
      play.setAttribute("aria-pressed", "true");
      cab.announce("Playing");
      last = performance.now();
      frame = requestAnimationFrame(tick);
    }

    const keys = {
      " ": toggle,
      ArrowLeft: () => bySpan(-1),
      ArrowRight: () => bySpan(1),
      ",": () => moved(nudge(time, -1, seconds)),
      ".": () => moved(nudge(time, 1, seconds)),
      Home: () => moved(0),
      End: () => moved(seconds),
    };
    slider.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
    slider.addEventListener("click", (event) => {
      const drawn = slider.querySelector("svg").getBoundingClientRect();
      const at = clamp(seconds * (event.clientX - drawn.left) / drawn.width, seconds);
      const hit = event.target.dataset.span;
      slider.focus();
      moved(at, hit === undefined ? spanAt(spans, at) : Number(hit));
    });
    speed.addEventListener("change", () => { last = performance.now(); });
    play.addEventListener("click", toggle);
    document.getElementById("trace-back").addEventListener("click", () => bySpan(-1));
    document.getElementById("trace-next").addEventListener("click", () => bySpan(1));
    spans.forEach((span, index) => {
      const go_to = cab.el("button", { type: "button", class: "plain" }, span.name);
      go_to.addEventListener("click", () => moved(span.start, index));
      span.row.cells[0].firstChild.replaceWith(go_to);
    });

    slider.setAttribute("role", "slider");
    slider.setAttribute("tabindex", "0");
    slider.setAttribute("aria-label", "Position in the trace");
    slider.setAttribute("aria-describedby", "trace-help");
    slider.setAttribute("aria-valuemin", "0");
    slider.setAttribute("aria-valuemax", seconds.toFixed(2));
    const asked = spans.findIndex((span) => span.id === cab.state.get().span);
    go(asked < 0 ? 0 : spans[asked].start, asked < 0 ? undefined : asked);
    if (asked >= 0) document.getElementById("trace").scrollIntoView();
  }

  cab.ready(() => {
    const box = document.getElementById("replay");
    if (box) replay(box);
  });
})();
