/* The matrix by another axis. */
"use strict";
(() => {
  const { el, state } = cab;
  const STEPS = 5;   // heat-0 to heat-5

  function start() {
    const form = document.getElementById("matrix-form");
    const select = document.getElementById("matrix-axis");
    const status = document.getElementById("status");
    if (!form || !select) return;
    const tables = [...document.querySelectorAll("table.matrix")].map((table) => ({
      table, id: table.dataset.board,
      fields: [...table.querySelectorAll("td[data-at]")].map((cell) => ({
        cell, at: cell.dataset.at, link: cell.querySelector("a")?.getAttribute("href"),
      })),
    }));
    form.hidden = false;
    const first = select.options[0].value;
    let shown = first;

    async function show() {
      if (select.value === shown) return;
      const option = select.selectedOptions[0];
      try {
        const data = await cab.load(select.dataset.file);
        if (option !== select.selectedOptions[0]) return;
        for (const it of tables) fill(it, data[it.id].rows, option);
        shown = option.value;
        status.textContent = "";
      } catch (error) {
        status.textContent = error.message;
      }
    }

    function read() {
      select.value = state.get().axis || first;
      if (select.selectedIndex === -1) select.value = first;
      show();
    }

    select.addEventListener("input", () => {
      state.set({ axis: select.value === first ? "" : select.value });
      show();
    });
    state.onchange(read);
    read();
  }

  function fill({ table, fields }, rows, option) {
    const axis = option.value;
    const known = fields.map(({ at }) => rows[at].axes[axis][0]).filter((value) => value !== null);
    const scaled = Boolean(option.dataset.top);
    const least = scaled ? 0 : Math.min(...known);
    const most = scaled ? Number(option.dataset.top) : Math.max(...known);
    table.querySelector(".what").textContent = `${option.textContent}, ${option.dataset.head}`;
    for (const { cell, at, link } of fields) {
      const [value, , , text, interval, , why] = rows[at].axes[axis];
      cell.className = "";
      if (value === null) {
        cell.replaceChildren(cab.dash(why));
        continue;
      }
      const share = most > least ? (value - least) / (most - least) : 1;
      cell.className = `heat-${Math.floor(STEPS * (option.dataset.better === "higher" ? share : 1 - share))}`;
      cell.replaceChildren(link ? el("a", { href: link }, text) : text, el("small", {}, interval));
    }
  }

  cab.ready(start);
})();
