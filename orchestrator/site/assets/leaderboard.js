/* The leaderboard: filters, another axis, one kind of work. What is chosen stands behind the '#' of the address. */
"use strict";
(() => {
  const { el, state } = cab;
  const PLAIN_FROM = 5;   // first column of the numbers without interval
  const BESIDE = 3;       // columns of findings and refusals

  /* The intervals of the page as it came, which it has in numbers alone. */
  function draw(table) {
    for (const interval of table.querySelectorAll("tbody small")) {
      const [low, high] = (interval.textContent.match(/[\d.]+/g) || []).map(Number);
      if (high !== undefined) interval.after(" ", cab.bar(low, parseFloat(interval.parentNode.textContent), high, 100));
    }
  }

  function start() {
    document.querySelectorAll("table.board").forEach(draw);
    const form = document.getElementById("filters");
    const tables = [...document.querySelectorAll("table[data-board]")].map(remember);
    if (!form || !tables.length) return;
    const fields = {
      q: form.querySelector("#filter-text"),
      axis: form.querySelector("#filter-axis"),
      work: form.querySelector("#filter-work"),
      cli: form.querySelector("#filter-cli"),
      model: form.querySelector("#filter-model"),
      claim: form.querySelector("#filter-claim"),
    };
    const status = document.getElementById("status");
    const rows = tables.flatMap((it) => it.rows);
    offer(fields.cli, rows.map((row) => row.cli));
    offer(fields.model, rows.map((row) => row.model));
    offer(fields.claim, rows.map((row) => row.claim));
    form.hidden = false;
    const first = fields.axis.options[0].value;
    let shown = `${first}/`;
    let asked = 0;

    async function show() {
      const wanted = `${fields.axis.value}/${fields.work.value}`;
      if (wanted !== shown) {
        const mine = ++asked;
        const plain = fields.axis.value === first && !fields.work.value;
        try {
          const data = plain ? null : await cab.load(fields.work.selectedOptions[0].dataset.file);
          if (mine !== asked) return;   // something else was chosen meanwhile
          const axes = [...fields.axis.options];
          for (const table of tables) {
            if (plain) restore(table);
            else fill(table, data[table.id] || { rows: {} }, fields.axis.selectedOptions[0], axes);
          }
          shown = wanted;
        } catch (error) {
          status.textContent = error.message;
          return;
        }
      }
      status.textContent = filter(tables, fields);
    }

    function read() {
      const wanted = state.get();
      for (const [name, field] of Object.entries(fields)) {
        field.value = wanted[name] ?? (name === "axis" ? first : "");
        if (field.selectedIndex === -1) field.selectedIndex = 0;   // no such choice in these results
      }
      show();
    }

    function write() {
      const values = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value.trim()]));
      if (values.axis === first) values.axis = "";
      state.set(values);
      show();
    }

    form.addEventListener("input", write);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(write));
    state.onchange(read);
    read();
  }

  /* A table as the page came: heads, rows and cells, by which the first view is found again. */
  function remember(table) {
    const head = [...table.tHead.rows[0].cells];
    const rows = [...table.tBodies[0].rows].map((row) => {
      const cells = [...row.cells];
      return {
        row, at: row.dataset.at, cells,
        cli: cells[1].textContent.trim(), model: cells[2].textContent.trim(), claim: cells[3].textContent.trim(),
        first: cells.map((cell) => ({ nodes: [...cell.childNodes], value: cell.dataset.value })),
        absent: false,
      };
    });
    const heads = head.map((cell) => ({
      cell, text: cell.textContent, direction: cell.dataset.first, sort: cell.getAttribute("aria-sort"),
    }));
    return { id: table.dataset.board, table, heads, rows };
  }

  function restore(it) {
    it.heads.forEach(({ cell, text, direction, sort }) => {
      title(cell, text, direction);
      if (sort) cell.setAttribute("aria-sort", sort); else cell.removeAttribute("aria-sort");
    });
    for (const row of it.rows) {
      row.absent = false;
      row.cells.forEach((cell, index) => put(cell, row.first[index].nodes, row.first[index].value));
    }
    it.table.tBodies[0].append(...it.rows.map(({ row }) => row));
  }

  function fill(it, data, option, axes) {
    const others = axes.filter((axis) => axis !== option).slice(0, it.heads.length - PLAIN_FROM - BESIDE - 2);
    title(it.heads[4].cell, `${option.dataset.head}, 95 % interval`, direction(option));
    others.forEach((axis, index) => title(it.heads[PLAIN_FROM + index].cell, axis.dataset.head, direction(axis)));
    const found = it.rows.map((row) => data.rows[row.at]).filter(Boolean);
    const top = Number(option.dataset.top) || largest(found.map((row) => row.axes[option.value]));
    for (const row of it.rows) {
      const values = data.rows[row.at];
      row.absent = !values;
      if (values) fillRow(row, values, option.value, others, top);
    }
    cab.sortBy(it.table, 4, direction(option));
  }

  function fillRow(row, values, axis, others, top) {
    const [value, low, high, text, interval, place, why] = values.axes[axis];
    put(row.cells[0], place ? [place] : [cab.dash(why)], place ? String(parseInt(place, 10)) : "");
    put(row.cells[3], [claim(values.claim)]);
    const link = row.first[4].nodes.find((node) => node.nodeName === "A");
    const number = link ? el("a", { href: link.getAttribute("href") }, text) : text;
    const drawn = value === null ? [cab.dash(why)] : [number, " ", el("small", {}, interval), " ", cab.bar(low, value, high, top)];
    put(row.cells[4], drawn, value === null ? "" : String(value));
    others.forEach((other, index) => {
      const [plain, , , shown, , , reason] = values.axes[other.value];
      put(row.cells[PLAIN_FROM + index], [plain === null ? cab.dash(reason) : shown], plain === null ? "" : String(plain));
    });
    const last = row.cells.length;
    values.beside.forEach(([told, unknown], index) => {
      put(row.cells[last - 2 - BESIDE + index], [unknown ? cab.dash(unknown) : told]);
    });
    put(row.cells[last - 2], [values.n.join("/")], String(values.n[0]));
    put(row.cells[last - 1], [values.runs]);
  }

  function filter(tables, fields) {
    const words = fields.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0, of = 0;
    for (const it of tables) {
      for (const row of it.rows) {
        const claimed = row.row.cells[3].textContent.trim();
        const text = `${row.cli} ${row.model} ${claimed}`.toLowerCase();
        const kept = !row.absent
          && words.every((word) => text.includes(word))
          && (!fields.cli.value || fields.cli.value === row.cli)
          && (!fields.model.value || fields.model.value === row.model)
          && (!fields.claim.value || fields.claim.value === claimed);
        row.row.hidden = !kept;
        count += kept;
        of += 1;
      }
    }
    return count === of ? "" : `${count} of ${of} pairs`;
  }

  // Parts

  function put(cell, nodes, value) {
    cell.replaceChildren(...nodes);
    if (value === undefined) delete cell.dataset.value; else cell.dataset.value = value;
  }

  function title(head, text, first) {
    (head.querySelector("button") || head).textContent = text;
    if (first) head.dataset.first = first;
  }

  function direction(option) { return option.dataset.better === "higher" ? "descending" : "ascending"; }

  function largest(axes) {
    return Math.max(0, ...axes.flatMap(([value, , high]) => [value ?? 0, high ?? 0])) || 1;
  }

  function claim(level) {
    const known = document.querySelector(`.claim-${CSS.escape(level)}`);
    return known ? known.cloneNode(true) : el("span", { class: "claim" }, level);
  }

  function offer(select, names) {
    const known = [...new Set(names)].sort();
    select.append(...known.map((name) => el("option", { value: name }, name)));
  }

  cab.ready(start);
})();
