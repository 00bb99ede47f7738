/* The guide: of the pairs that may be used, those that the data cannot tell apart. */
"use strict";
(() => {
  const { el, state } = cab;

  function start() {
    const form = document.getElementById("guide");
    if (!form) return;
    const work = document.getElementById("guide-work");
    const status = document.getElementById("status");
    const answers = document.getElementById("answers");
    const models = [...form.querySelectorAll("input[name=model]")];
    const matters = [...form.querySelectorAll("input[name=matters]")];
    form.hidden = false;
    let asked = 0;

    async function show() {
      const mine = ++asked;
      const axis = matters.find((input) => input.checked);
      const allowed = new Set(models.filter((input) => input.checked).map((input) => input.value));
      try {
        const data = await cab.load(work.selectedOptions[0].dataset.file);
        if (mine !== asked) return;
        const found = Object.entries(data).filter(([id]) => id.startsWith("result-"));
        // This cab's methodology first, as everywhere; an answer of another one says so.
        found.sort(([one], [other]) => (other === form.dataset.board) - (one === form.dataset.board));
        const parts = found.map(([, board]) =>
          answer(board, axis, allowed, matters, found.length > 1 ? `Methodology ${board.methodology}: ` : ""));
        answers.replaceChildren(...parts.map((part) => part.node));
        status.textContent = parts.map((part) => part.said).join(" ");
      } catch (error) {
        status.textContent = error.message;
      }
    }

    function read() {
      const wanted = state.get();
      work.value = wanted.work ?? "";
      if (work.selectedIndex === -1) work.selectedIndex = 0;
      const axis = matters.find((input) => input.value === wanted.matters) || matters[0];
      axis.checked = true;
      const without = new Set((wanted.without || "").split(" "));
      for (const input of models) input.checked = !without.has(input.value);
      show();
    }

    function write() {
      const axis = matters.find((input) => input.checked);
      const without = models.filter((input) => !input.checked).map((input) => input.value);
      state.set({ work: work.value, matters: axis === matters[0] ? "" : axis.value, without: without.join(" ") });
      show();
    }

    form.addEventListener("input", write);
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const button of form.querySelectorAll("button[data-all]")) {
      button.addEventListener("click", () => {
        for (const input of models) input.checked = button.dataset.all === "yes";
        write();
      });
    }
    state.onchange(read);
    read();
  }

  /* The values between which a number of a row lies; null where that is not known. */
  function span(row, key) {
    const [value, low, high, , , , , lowest, highest] = row.axes[key];
    return value === null || low === null || high === null ? null : [lowest ?? low, highest ?? high];
  }

  /* Those of the rows that no other is clearly better than. */
  function leaders(rows, key, better) {
    const known = rows.filter((row) => span(row, key));
    if (better === "higher") {
      const least = Math.max(...known.map((row) => span(row, key)[0]));
      return known.filter((row) => span(row, key)[1] >= least);
    }
    const most = Math.min(...known.map((row) => span(row, key)[1]));
    return known.filter((row) => span(row, key)[0] <= most);
  }

  function answer(board, input, allowed, matters, heading) {
    const key = input.value, better = input.dataset.better;
    const rows = Object.values(board.rows).filter((row) => allowed.has(row.model));
    const whole = rows.filter((row) => row.units === board.units);
    // Time alone would favour who gives up at once.
    const able = key === "wall" ? leaders(whole, "pass", "higher") : whole;
    const set = leaders(able, key, better);
    const sign = better === "higher" ? -1 : 1;
    set.sort((a, b) => sign * (a.axes[key][0] - b.axes[key][0]) || (a.name < b.name ? -1 : 1));
    const known = able.filter((row) => span(row, key)).length;
    const left = rows.length - known;
    const said = heading + sentence(set, known, left, able, whole);
    if (!set.length) return { node: el("div"), said };
    return { node: table(set, input, matters[0], heading), said };
  }

  function sentence(set, known, left, able, whole) {
    if (!set.length) return "No pair of these can be compared on this work.";
    const told = set.length === 1
      ? `One pair stands apart from the other ${known - 1}.`
      : `${set.length} of ${known} pairs cannot be told apart: any of them may be the best.`;
    if (able.length < whole.length) {
      return `Of ${whole.length} pairs, ${able.length} may solve most. ${told}`;
    }
    return left ? `${told} ${left} more ran on fewer tasks, or have no interval.` : told;
  }

  function table(set, input, passing, heading) {
    const key = input.value;
    const shown = key === "pass" ? [passing] : [input, passing];
    const most = Math.max(...set.map((row) => row.axes[key][2] ?? 0));
    const heads = ["CLI", "model", "claim", ...shown.map((it) => `${it.dataset.head}, 95 % interval`), "counted"];
    const made = el("table", { class: "answer" },
      el("caption", {}, heading ? `${heading}not told apart by these results` : "Not told apart by these results"),
      el("thead", {}, el("tr", {}, heads.map((text, index) =>
        el("th", { scope: "col", class: index > 2 ? "num" : null }, text)))),
      el("tbody", {}, set.map((row) => el("tr", {},
        el("th", { scope: "row" }, el("a", { href: cab.root + row.page }, row.cli)),
        el("td", {}, row.model),
        el("td", {}, el("span", { class: `claim claim-${row.claim}` }, row.claim)),
        shown.map((it) => {
          const [value, low, high, text, interval] = row.axes[it.value];
          const top = Number(it.dataset.top) || most || 1;
          return el("td", { class: "num" }, value === null ? cab.dash("not measured") : text, " ",
            el("small", {}, interval), " ", cab.bar(low, value, high, top));
        }),
        el("td", { class: "num" }, row.n.join("/"))))));
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Answer" }, made);
  }

  cab.ready(start);
})();
