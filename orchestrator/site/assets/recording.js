/* Recordings: player and recording are loaded when somebody asks to see one. */
"use strict";
(() => {
  const PLACE = `${cab.root}vendor/asciinema-player/asciinema-player`;
  let loaded = null;
  const playing = new Set();

  function element(tag, attributes) {
    return new Promise((resolve, reject) => {
      const made = cab.el(tag, attributes);
      made.addEventListener("load", resolve);
      made.addEventListener("error", () => reject(new Error("the player could not be loaded")));
      document.head.append(made);
    });
  }

  function player() {
    loaded ??= Promise.all([
      element("link", { rel: "stylesheet", href: `${PLACE}.css` }),
      element("script", { src: `${PLACE}.min.js` }),
    ]);
    return loaded;
  }

  async function start(box) {
    const place = box.querySelector(".player");
    const button = box.querySelector(".play-recording");
    button.disabled = true;
    place.textContent = "Loading…";
    try {
      const [text] = await Promise.all([cab.load(box.dataset.recording), player()]);
      for (const other of playing) other.pause();
      place.replaceChildren();
      box.classList.add("open");
      const made = AsciinemaPlayer.create({ data: text }, place, {
        cols: Number(box.dataset.columns),
        rows: Number(box.dataset.rows),
        fit: "width",
        idleTimeLimit: box.querySelector(".short-pauses").checked ? 2 : undefined,
      });
      playing.add(made);
      box.querySelector(".short-pauses").addEventListener("change", () => again(box, made), { once: true });
      button.hidden = true;
      place.querySelector(".ap-wrapper")?.focus();
      await made.play();
    } catch (error) {
      place.textContent = `The recording cannot be played: ${error.message}.`;
      button.disabled = false;
    }
  }

  /* With other pauses: the player takes that only when it is made. */
  function again(box, made) {
    playing.delete(made);
    made.dispose();
    start(box);
  }

  /* The recording at a moment: what is asked for while the player is on its way waits, and only the last. */
  function follower(made) {
    let wanted = null, busy = false;
    return async (time) => {
      wanted = time;
      if (busy) return;
      busy = true;
      while (wanted !== null) {
        const to = wanted;
        wanted = null;
        await made.seek(to);
      }
      busy = false;
    };
  }

  /* A player without controls of its own, which shows what the terminal did at the time of the trace. Pauses keep
     their length, since both go by one clock. */
  function inStep(button) {
    const box = document.getElementById("trace-screen");
    const place = box.querySelector(".player");
    const replay = document.getElementById("replay");
    const slider = document.getElementById("timeline");
    let made = null, follow = null, asked = 0;

    function shown(on) {
      box.hidden = !on;
      button.setAttribute("aria-pressed", String(on));
    }

    async function open() {
      const mine = ++asked;
      shown(true);
      place.textContent = "Loading…";
      try {
        const [text] = await Promise.all([cab.load(box.dataset.file), player()]);
        if (mine !== asked) return;   // closed meanwhile
        place.replaceChildren();
        made = AsciinemaPlayer.create({ data: text }, place, {
          cols: Number(box.dataset.columns),
          rows: Number(box.dataset.rows),
          fit: "width",
          controls: false,
          preload: true,
        });
        follow = follower(made);
        await follow(Number(slider.getAttribute("aria-valuenow")));
      } catch (error) {
        if (mine === asked) place.textContent = `The recording cannot be played: ${error.message}.`;
      }
    }

    function close() {
      asked += 1;
      shown(false);
      follow = null;
      made?.dispose();
      made = null;
    }

    button.addEventListener("click", () => (box.hidden ? open() : close()));
    replay.addEventListener("cab:time", (event) => follow?.(event.detail));
  }

  cab.ready(() => {
    const step = document.getElementById("trace-terminal");
    if (step) inStep(step);
    for (const box of document.querySelectorAll("[data-recording]")) {
      box.querySelector(".play-recording").addEventListener("click", () => start(box));
    }
  });
})();
