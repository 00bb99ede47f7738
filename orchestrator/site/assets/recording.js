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

  cab.ready(() => {
    for (const box of document.querySelectorAll("[data-recording]")) {
      box.querySelector(".play-recording").addEventListener("click", () => start(box));
    }
  });
})();
