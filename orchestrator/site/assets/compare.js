/* Two pairs, CLIs or models, paired by task over what both share. */
"use strict";
(() => {
  const { el, state, paired } = cab;

  async function start() {
    const form = document.getElementById("compare");
    const status = document.getElementById("status");
    if (!form) return;
    const field = (name) => document.getElementById(`compare-${name}`);
    const fields = { group: field("group"), by: field("by"), a: field("a"), b: field("b") };
    const constants = {
      alpha: Number(form.dataset.alpha), minTasks: Number(form.dataset.minTasks),
      minCoverage: Number(form.dataset.minCoverage), z: Number(form.dataset.z), zPower: Number(form.dataset.zPower), power: Number(form.dataset.power),
    };
    let data;
    try {
      data = await cab.load(form.dataset.file);
    } catch (error) {
      status.textContent = error.message;
      return;
    }
    form.hidden = false;

    function offer(wanted) {
      const names = [...sides(data[fields.group.value], fields.by.value).keys()];
      [fields.a, fields.b].forEach((select, at) => {
        select.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
        const asked = at ? wanted.b : wanted.a;
        select.value = names.includes(asked) ? asked : names[Math.min(at, names.length - 1)] ?? "";
      });
    }

    function show() {
      const group = data[fields.group.value];
      document.getElementById("not-results").hidden = fields.group.selectedOptions[0].dataset.kind === "result";
      const known = sides(group, fields.by.value);
      const a = known.get(fields.a.value), b = known.get(fields.b.value);
      const place = document.getElementById("comparison");
      if (!a || !b || a === b) {
        place.replaceChildren();
        status.textContent = known.size < 2 ? "There are no two of these." : "Choose two that differ.";
        return;
      }
      status.textContent = "";
      place.replaceChildren(...described(compared(group, a, b, constants), a, b, constants));
    }

    function read() {
      const wanted = state.get();
      fields.group.value = wanted.of ?? fields.group.options[0].value;
      if (fields.group.selectedIndex === -1) fields.group.selectedIndex = 0;
      fields.by.value = wanted.by ?? "pair";
      if (fields.by.selectedIndex === -1) fields.by.selectedIndex = 0;
      offer(wanted);
      show();
    }

    function write() {
      const of = fields.group.selectedIndex ? fields.group.value : "";
      state.set({ of, by: fields.by.value, a: fields.a.value, b: fields.b.value });
      show();
    }

    form.addEventListener("input", (event) => {
      if (event.target === fields.group || event.target === fields.by) offer({ a: fields.a.value, b: fields.b.value });
      write();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    field("swap").addEventListener("click", () => {
      [fields.a.value, fields.b.value] = [fields.b.value, fields.a.value];
      write();
    });
    state.onchange(read);
    read();
  }

  /* What can be compared, by name: for each what it is paired over (`with`), with its counts of each task. */
  function sides(group, by) {
    const found = new Map();
    for (const pair of group.pairs) {
      const name = by === "pair" ? `${pair.cli} × ${pair.model}` : pair[by];
      if (!found.has(name)) found.set(name, { name, page: pair.pages[by], counts: new Map() });
      found.get(name).counts.set(by === "pair" ? "" : by === "cli" ? pair.model : pair.cli, pair.units);
    }
    return new Map([...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  function compared(group, a, b, constants) {
    const shared = [...a.counts.keys()].filter((key) => b.counts.has(key));
    const tasks = [];
    const counted = [0, 0], lost = [0, 0];
    const only = [0, 0];
    const least = [0, 0], greatest = [0, 0];   // sums of rates with all lost cells as failed, and as passed
    let units = 0, once = true, most = 1;
    group.tasks.forEach(([name, page], at) => {
      const pairs = [];
      for (const key of new Set([...a.counts.keys(), ...b.counts.keys()])) {
        const [pa, na, la] = counts(a, key, at), [pb, nb, lb] = counts(b, key, at);
        if (na + la && !(nb + lb)) only[0] += 1;
        if (nb + lb && !(na + la)) only[1] += 1;
        if (!(na + la) || !(nb + lb)) continue;
        counted[0] += na; counted[1] += nb; lost[0] += la; lost[1] += lb;
        most = Math.max(most, na, nb);
        [[pa, na, la], [pb, nb, lb]].forEach(([passed, of, gone], side) => {
          least[side] += passed / (of + gone);
          greatest[side] += (passed + gone) / (of + gone);
        });
        if (na && nb) pairs.push([pa, na, pb, nb]);
      }
      if (!pairs.length) return;
      units += pairs.length;
      once = once && pairs.length === 1 && pairs[0][1] === 1 && pairs[0][3] === 1;
      tasks.push({ name, page, pairs, gain: sum(pairs.map(([pa, na, pb, nb]) => pb / nb - pa / na)) });
    });
    const weight = tasks.length / units;   // so weighted, their mean is the difference of the rates
    const differences = tasks.map((task) => weight * task.gain);
    const rate = (passes, runs) => sum(tasks.flatMap(({ pairs }) => pairs.map((it) => it[passes] / it[runs]))) / units;
    const coverage = [0, 1].map((side) => counted[side] / (counted[side] + lost[side]));
    const p = tasks.length ? paired.signFlip(tasks.map((task) => task.pairs)) : 1;
    const mean = tasks.length ? sum(differences) / tasks.length : 0;
    let verdict = "no detectable difference";
    if (tasks.length < constants.minTasks) verdict = "too few shared tasks";
    else if (p < constants.alpha) {
      const apart = Math.max(least[1] - greatest[0], least[0] - greatest[1]) > 1e-9;
      if (Math.min(...coverage) < constants.minCoverage || !apart) verdict = "too many lost cells";
      else verdict = mean > 0 ? "better" : "worse";
    }
    return {
      verdict, tasks, units, only, once, p, mean, coverage, counted, lost, shared, differences,
      rates: tasks.length ? [rate(0, 1), rate(2, 3)] : [null, null],
      interval: tasks.length ? paired.interval(differences, constants.z, once, constants.minTasks) : null,
      needed: tasks.length ? paired.needed(differences, constants.z, constants.zPower, constants.minTasks, weight / most, constants.power) : null,
    };
  }

  function counts(side, key, at) {
    const all = side.counts.get(key);
    return all ? all.slice(3 * at, 3 * at + 3) : [0, 0, 0];
  }

  // Words

  function described(it, a, b, constants) {
    const parts = [el("p", { class: `verdict verdict-${it.verdict.split(" ")[0]}`, id: "verdict", "data-verdict": it.verdict }, ...verdict(it, a, b, constants))];
    if (!it.tasks.length) return parts;
    parts.push(facts(it, a, b), outcomes(it), tasksTable(it, a, b));
    return parts;
  }

  function verdict(it, a, b, constants) {
    const link = (side) => el("a", { href: cab.root + side.page }, side.name);
    switch (it.verdict) {
      case "better":
      case "worse":
        return [link(b), ` is ${it.verdict} than `, link(a), ` by ${points(Math.abs(it.mean))}, on ${many(it.tasks.length, "shared task")}.`];
      case "too few shared tasks":
        return [`Too few shared tasks: ${it.tasks.length}, and a verdict needs ${constants.minTasks}.`];
      case "too many lost cells":
        if (Math.min(...it.coverage) >= constants.minCoverage) return ["Too many lost cells: had all of them passed, or failed, it could have come out the other way."];
        return ["Too many lost cells: of what both attempted, ", `${percent(it.coverage[0])} counted for A and ${percent(it.coverage[1])} for B; a verdict needs ${percent(constants.minCoverage)}.`];
      default:
        return ["No detectable difference between ", link(b), " and ", link(a), ` on ${many(it.tasks.length, "shared task")}. `,
          `These tasks would likely show one of ${points(it.needed.detectable)} or more`,
          it.needed.tasks ? `; to show the ${points(Math.abs(it.mean))} that were measured would take about ${it.needed.tasks} tasks at as many runs.` : "."];
    }
  }

  function facts(it, a, b) {
    const [low, high] = it.interval;
    return el("dl", { class: "facts" },
      el("dt", {}, `A, ${a.name}`), el("dd", {}, `${percent(it.rates[0])} passed; ${it.counted[0]} of ${it.counted[0] + it.lost[0]} cells counted`),
      el("dt", {}, `B, ${b.name}`), el("dd", {}, `${percent(it.rates[1])} passed; ${it.counted[1]} of ${it.counted[1] + it.lost[1]} cells counted`),
      el("dt", {}, "B − A"), el("dd", { id: "difference" }, `${signed(it.mean)} [${signed(low)}, ${signed(high)}] points, 95 % interval `, cab.bar(low + 1, it.mean + 1, high + 1, 2)),
      el("dt", {}, "p"), el("dd", { id: "p-value" }, `${it.p < 0.0001 ? "< 0.0001" : it.p.toFixed(4)}, ${it.once ? "exact McNemar" : "exact sign-flip"}, of this one comparison`),
      el("dt", {}, "shared"), el("dd", {}, `${many(it.tasks.length, "task")}, ${many(it.units, "unit")}; only A attempted ${it.only[0]}, only B ${it.only[1]}`));
  }

  function outcomes(it) {
    const won = it.tasks.filter((task) => task.gain > 0).length;
    const lost = it.tasks.filter((task) => task.gain < 0).length;
    return el("p", { id: "record" }, `Of ${many(it.tasks.length, "task")}, B did better on ${won}, A on ${lost}, and both alike on ${it.tasks.length - won - lost}.`);
  }

  function tasksTable(it, a, b) {
    const side = (task, passes, runs) => `${sum(task.pairs.map((pair) => pair[passes]))}/${sum(task.pairs.map((pair) => pair[runs]))}`;
    const rows = [...it.tasks].sort((one, other) => other.gain - one.gain || (one.name < other.name ? -1 : 1));
    const word = (gain) => (gain > 0 ? "B" : gain < 0 ? "A" : "alike");
    const table = el("table", { "data-sortable": true, id: "compared-tasks" },
      el("caption", {}, "Runs that passed, of those counted, by task"),
      el("thead", {}, el("tr", {},
        el("th", { scope: "col", "data-sort": "text" }, "task"),
        el("th", { scope: "col", class: "num", "data-sort": "number" }, "A"),
        el("th", { scope: "col", class: "num", "data-sort": "number" }, "B"),
        el("th", { scope: "col", "data-sort": "text" }, "better"))),
      el("tbody", {}, rows.map((task) => el("tr", {},
        el("th", { scope: "row" }, el("a", { href: cab.root + task.page }, task.name)),
        el("td", { class: "num" }, side(task, 0, 1)),
        el("td", { class: "num" }, side(task, 2, 3)),
        el("td", {}, word(task.gain))))));
    cab.sortable(table);
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "By task" }, table);
  }

  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const percent = (share) => (share === null || Number.isNaN(share) ? "–"
    : share === 0 || share === 1 ? `${100 * share} %` : `${(100 * share).toFixed(1)} %`);
  const points = (share) => `${(100 * share).toFixed(1)} points`;
  const signed = (share) => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(100 * share).toFixed(1)}`;
  const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  cab.compared = compared;
  cab.ready(start);
})();
