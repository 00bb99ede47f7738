/* Statistics of paired differences, one for each task. Two-sided; the same as orchestrator/stats/paired.py,
   but exact for any number of tasks. */
"use strict";
(() => {
  const MOST_STEPS = 200000;   // of sums; finer ones would say nothing more

  const gcd = (a, b) => (b ? gcd(b, a % b) : a);

  /* The exact p-value of a mean of differences, by all ways in which each task's sides could be swapped.
     `units` holds for each task its [passesA, runsA, passesB, runsB]. */
  function signFlip(tasks) {
    let common = 1;
    for (const units of tasks) for (const [, na, , nb] of units) {
      common = (common * na) / gcd(common, na);
      common = (common * nb) / gcd(common, nb);
      if (common > 1e6) common = 1e6;
    }
    const whole = tasks.map((units) => units.reduce((sum, [pa, na, pb, nb]) =>
      sum + Math.round((common * pb) / nb) - Math.round((common * pa) / na), 0));
    return flipped(whole);
  }

  /* The same of whole numbers: the share of sums of ±each that lie as far from 0 as theirs. */
  function flipped(differences) {
    let given = differences.filter((value) => value !== 0).map(Math.abs);
    if (!given.length) return 1;
    let reached = Math.abs(differences.reduce((sum, value) => sum + value, 0));
    const divisor = given.reduce(gcd);
    given = given.map((value) => value / divisor);
    reached /= divisor;
    let most = given.reduce((sum, value) => sum + value, 0);
    if (most > MOST_STEPS) {
      const scale = MOST_STEPS / most;
      given = given.map((value) => Math.round(value * scale));
      reached = Math.floor(reached * scale);
      most = given.reduce((sum, value) => sum + value, 0);
    }
    // chances[s + most]: of the sum s after the differences so far
    let chances = new Float64Array(2 * most + 1);
    chances[most] = 1;
    let reach = 0;
    for (const step of given) {
      const next = new Float64Array(2 * most + 1);
      for (let sum = -reach; sum <= reach; sum += 1) {
        const chance = chances[sum + most];
        if (chance) {
          next[sum + most + step] += chance / 2;
          next[sum + most - step] += chance / 2;
        }
      }
      chances = next;
      reach += step;
    }
    let tail = 0;
    for (let sum = Math.ceil(reached); sum <= most; sum += 1) {
      tail += chances[most + sum] + (sum ? chances[most - sum] : 0);
    }
    return Math.min(1, tail);
  }

  /* The variance of differences between tasks, with half a task added to each way a pair can come out. */
  function spread(differences) {
    const tasks = differences.length + 2;
    const total = differences.reduce((sum, value) => sum + value, 0);
    const squares = differences.reduce((sum, value) => sum + value * value, 0);
    return (squares + 1 - (total * total) / tasks) / tasks;
  }

  /* The 95 % interval of the mean of differences between -1 and 1. Of single runs (`once`), and where there is no
     spread to see, that of Agresti and Min; of means of several runs Student's. */
  function interval(differences, z, once, minTasks) {
    const tasks = differences.length;
    const total = differences.reduce((sum, value) => sum + value, 0);
    let middle = total / (tasks + 2), half = z * Math.sqrt(spread(differences) / (tasks + 2));
    if (!once && tasks >= minTasks && new Set(differences).size > 1) {
      middle = total / tasks;
      const squares = differences.reduce((sum, value) => sum + (value - middle) ** 2, 0);
      half = student(z, tasks - 1) * Math.sqrt(squares / (tasks - 1) / tasks);
    }
    return [Math.max(-1, middle - half), Math.min(1, middle + half)];
  }

  /* Student's quantile from the normal one, by Cornish and Fisher's expansion: from 5 degrees on within 0.003. */
  function student(z, degrees) {
    return z + (z ** 3 + z) / (4 * degrees) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2)
      + (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * degrees ** 3);
  }

  /* The probability that at least `least` of so many tasks differ, where each does with probability `share`. */
  function atLeast(least, tasks, share) {
    if (share >= 1) return tasks >= least ? 1 : 0;
    let term = (1 - share) ** tasks, fewer = 0;
    for (let number = 0; number < least; number += 1) {
      fewer += term;
      term *= ((tasks - number) / (number + 1)) * (share / (1 - share));
    }
    return 1 - fewer;
  }

  /* The smallest difference that so many tasks would show, and how many tasks would show this one: more than there
     are, which did not. `step` is the least by which a task can differ: the exact test sees nothing where fewer
     than `minTasks` tasks do, however little varies. */
  function needed(differences, z, zPower, minTasks, step, power) {
    const tasks = differences.length;
    const mean = differences.reduce((sum, value) => sum + value, 0) / tasks;
    const variance = spread(differences), reach = (z + zPower) ** 2;
    let [low, high] = [0, 1];
    for (let halved = 0; halved < 50 && tasks >= minTasks; halved += 1) {
      const middle = (low + high) / 2;
      if (atLeast(minTasks, tasks, middle) < power) low = middle;
      else high = middle;
    }
    const detectable = Math.max(Math.sqrt((reach * variance) / tasks), step * high);
    if (!mean) return { detectable, tasks: null };
    let more = Math.max(minTasks, tasks + 1, Math.ceil((reach * variance) / mean ** 2));
    while (atLeast(minTasks, more, Math.min(1, Math.abs(mean) / step)) < power) more += 1;
    return { detectable, tasks: more };
  }

  cab.paired = { signFlip, flipped, interval, student, spread, needed };
})();
