/* What all pages share, as one global `cab`. A classic script: browsers refuse modules from a folder.
   Text reaches the page by textContent alone. */
"use strict";
(() => {
  const root = document.documentElement.dataset.root || "";
  const waiting = new Map();   // path -> {promise, resolve, reject}
  let loading = 0;

  function slot(path) {
    if (!waiting.has(path)) {
      const it = {};
      it.promise = new Promise((resolve, reject) => Object.assign(it, { resolve, reject }));
      it.promise.catch(() => {});   // whoever asks hears of it
      waiting.set(path, it);
    }
    return waiting.get(path);
  }

  /* A data file calls this with its own path. */
  function data(path, value) { slot(path).resolve(value); }

  /* The value of a data file by its path in the site; loaded once, when it is first asked for. */
  function load(path) {
    const it = slot(path);
    if (!it.asked) {
      it.asked = true;
      const script = document.createElement("script");
      script.src = root + path.split("/").map(encodeURIComponent).join("/");
      script.addEventListener("error", () => it.reject(new Error(`${path} could not be loaded`)));
      document.head.append(script);
      busy(1);
      it.promise.finally(() => busy(-1)).catch(() => {});
    }
    return it.promise;
  }

  /* Until all data are there that were asked for, the page says that it is about to change. */
  function busy(more) {
    loading += more;
    document.querySelector("main")?.setAttribute("aria-busy", String(loading > 0));
  }

  /* An element with attributes and children; a string child is text. */
  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  }

  const svgNames = "http://www.w3.org/2000/svg";
  function svg(tag, attributes = {}, ...children) {
    const made = document.createElementNS(svgNames, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  /* What a page was asked to show, kept behind the '#' of its address. */
  const state = {
    get() { return Object.fromEntries(new URLSearchParams(location.hash.slice(1))); },
    set(values) {
      const kept = new URLSearchParams();
      for (const [name, value] of Object.entries(values)) if (value) kept.set(name, value);
      const text = kept.toString();
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    },
    onchange(listener) { addEventListener("hashchange", () => listener(state.get())); },
  };

  function keyOf(cell, numeric) {
    if (!cell) return null;
    const text = cell.dataset.value ?? cell.textContent.trim();
    if (!numeric) return text.toLowerCase();
    // The first number of the text: of "62.5 [52.1, 71.9]" the value, of "1–4" the best place, of "39/40" the first.
    const number = Number.parseFloat(text.replace(/(?<=\d)[\s,](?=\d{3})|[$<>]/g, ""));
    return Number.isNaN(number) ? null : number;
  }

  const collator = new Intl.Collator("en", { numeric: true });

  /* Sort a table's body by a column; what was not measured comes last either way. */
  function sortBy(table, index, direction) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const numeric = heads[index].dataset.sort === "number";
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, at) => ({ row, at, key: keyOf(row.cells[index], numeric) }));
    const sign = direction === "descending" ? -1 : 1;
    rows.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.at - b.at;
      const order = numeric ? a.key - b.key : collator.compare(a.key, b.key);
      return sign * order || a.at - b.at;
    });
    body.append(...rows.map((it) => it.row));
    heads.forEach((head, at) => {
      if (at === index) head.setAttribute("aria-sort", direction);
      else head.removeAttribute("aria-sort");
    });
  }

  /* Turn each head with `data-sort` ("number" or "text") into a button. */
  function sortable(table) {
    if (!table.tHead) return;
    [...table.tHead.rows[table.tHead.rows.length - 1].cells].forEach((head, index) => {
      if (!head.dataset.sort) return;
      const button = el("button", { type: "button", class: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.dataset.first || (head.dataset.sort === "number" ? "descending" : "ascending");
        const other = first === "descending" ? "ascending" : "descending";
        const direction = head.getAttribute("aria-sort") === first ? other : first;
        sortBy(table, index, direction);
        table.dispatchEvent(new CustomEvent("cab:sorted", { bubbles: true, detail: { index, direction } }));
      });
    });
  }

  /* An interval as a bar, as the pages' own are drawn; on a scale from 0 to `top`. */
  function bar(low, value, high, top) {
    if (low === null || high === null) return "";
    const at = (number) => Math.round(Math.min(99, Math.max(0, (99 * number) / top)));
    return svg("svg", { class: "iv", viewBox: "0 0 99 9" },
      svg("path", { d: `M${at(low)} 4H${at(high)}` }), svg("path", { d: `M${at(value)} 0V9` }));
  }

  /* A dash that says why there is no number. */
  function dash(reason) {
    const why = reason || "not measured";
    return el("span", { class: "dash", title: why },
      el("span", { "aria-hidden": "true" }, "–"), el("span", { class: "unseen" }, `not measured: ${why}`));
  }

  async function copyText(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Not a secure context, or refused: the way of before.
      const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      if (!done) throw new Error("the browser does not let pages copy");
    }
  }

  /* Show and bring to life every `[data-copy]` below a node. */
  function copyButtons(below) {
    for (const button of below.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      const label = button.textContent;
      button.addEventListener("click", async () => {
        let said = "Copied";
        try { await copyText(button.dataset.copy); } catch { said = "Not copied"; }
        button.textContent = said;
        announce(said);
        setTimeout(() => { button.textContent = label; }, 1500);
      });
    }
  }

  /* Say something to those who listen to the page. */
  function announce(text) {
    let region = document.getElementById("announcements");
    if (!region) {
      region = el("div", { id: "announcements", class: "unseen", role: "status", "aria-live": "polite" });
      document.body.append(region);
    }
    region.textContent = text;
  }

  function ready(start) {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
    else start();
  }

  window.cab = { root, data, load, el, svg, bar, dash, state, sortable, sortBy, copyButtons, announce, ready };

  document.documentElement.classList.add("scripted");
  ready(() => {
    document.querySelectorAll("table[data-sortable]").forEach(sortable);
    copyButtons(document);
  });
})();
