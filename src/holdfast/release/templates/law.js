"use strict";
/* How far the error of a weighted sum reaches: the steps of holdfast's noise/inversion.py, in doubles. */
const reaches = (() => {
  const SHARE = 1e-3, FAINT = 1e-4, ROUND = 16, MOST = 240, LEAST = 1e-8, NEAR = 1e-9;
  const LEFT = 0.83, MOST_BLURRED = 2000, SLOPES = [1e-3, 1e3], CLOSE = 0.05, GOLDEN = (Math.sqrt(5) - 1) / 2;
  const MARGINS = Array.from({ length: 13 }, (_, k) => 1 + k / 4);

  /* P(normal > z), by the trapezoidal rule, which misses by less than a double holds. */
  const above = (z) => {
    if (z < 0) return 1 - above(-z);
    const x = z / Math.SQRT2;
    let sum = 1 / (x * x);
    for (let n = 1; n < 14; n += 1) sum += 2 * Math.exp(-n * n / 4) / (n * n / 4 + x * x);
    return x * Math.exp(-x * x) * sum / (4 * Math.PI) - 1 / Math.expm1(4 * Math.PI * x);
  };
  const normal = (tail) => {
    let [low, high] = [0, 40];
    for (let n = 0; n < 100; n += 1) {
      const middle = (low + high) / 2;
      if (above(middle) > tail) low = middle; else high = middle;
    }
    return (low + high) / 2;
  };

  /* The mean of e^{ixu} of a noise u, which is real, and at least log E e^{tu}. */
  const wave = (law, k) => {
    const size = law.parameter[k], variance = law.variance[k];
    if (!law.gaussian) return law.integer ? (x) => { const half = Math.sin(x / 2); return 1 / (1 + 2 * variance * half * half); } : (x) => 1 / (1 + variance * x * x / 2);
    if (!law.integer) return (x) => Math.exp(-size * x * x / 2);
    const places = [-4, -3, -2, -1, 0, 1, 2, 3, 4];
    const sum = size > 0.16
      ? (x) => places.reduce((found, m) => found + Math.exp(-size * (x + 2 * Math.PI * m) ** 2 / 2), 0)
      : (x) => places.reduce((found, m) => found + Math.exp(-m * m / (2 * size)) * Math.cos(m * x), 0);
    const whole = sum(0), turn = 2 * Math.PI;
    if (size > 4) return (x) => Math.exp(-size * (x - turn * Math.round(x / turn)) ** 2 / 2);
    return (x) => sum(x - turn * Math.round(x / turn)) / whole;
  };
  const tilted = (law, k, t) => {
    if (law.gaussian) return law.parameter[k] * t * t / 2;
    const rest = 1 - law.variance[k] * (law.integer ? Math.cosh(Math.min(Math.abs(t), 700)) - 1 : t * t / 2);
    return rest > 0 ? -Math.log(rest) : Infinity;
  };

  const sizes = (weights) => [...new Set(weights.filter(Boolean).map(Math.abs))].sort((a, b) => a - b);
  const same = (weights) => {
    const found = sizes(weights);
    return found.length > 0 && found[found.length - 1] - found[0] <= NEAR * found[0];
  };
  const stepOf = (weights) => {
    const found = sizes(weights);
    return found.every((each) => Math.abs(each / found[0] - Math.round(each / found[0])) <= NEAR) ? found[0] : null;
  };

  /* Chernoff's limit at the best slope, by golden section. */
  const proved = (sum, tail, blur = 0) => {
    const ends = [sum.error, Math.max(...sizes(sum.leaves))];
    let low = Math.log(SLOPES[0] / Math.max(...ends)), high = Math.log(SLOPES[1] / Math.min(...ends));
    const limit = (place) => ((Math.exp(place) * blur) ** 2 / 2 + sum.tilted(Math.exp(place)) - Math.log(tail)) / Math.exp(place);
    for (let best = Infinity; ;) {
      const inner = [high - (high - low) * GOLDEN, low + (high - low) * GOLDEN], [first, second] = inner.map(limit);
      best = Math.min(best, first, second);
      if (high - low <= CLOSE) return best;
      if (first <= second) high = inner[1]; else low = inner[0];
    }
  };

  /* The least multiple of a step that the error of a sum keeps but for 2·tail of the time; null: too much work. */
  const onSteps = (sum, around, step, tail) => {
    const half = Math.ceil(around / step / 2), size = 2 * half + 1, base = 2 * Math.PI / (size * step);
    let falls = same(sum.leaves);
    if (!Number.isFinite(around) || (!falls && half > MOST)) return null;
    const terms = [];
    while (terms.length < half) {
      if (falls && terms.length && Math.abs(terms[terms.length - 1]) < FAINT * tail) {
        if (sum.fallen(base * terms.length) < FAINT * tail) break;
        falls = false;
      }
      if (terms.length >= MOST) return null;
      const last = Math.min(terms.length + ROUND, half);
      for (let k = terms.length + 1; k <= last; k += 1) terms.push(sum.phi(base * k));
    }
    const turns = terms.map((_, k) => (k + 1) * (Math.PI / size)), shares = terms.map((each, k) => each / Math.sin(turns[k]));
    const within = (places) => {
      const odd = 2 * places + 1;
      return (odd + 2 * shares.reduce((found, each, k) => found + each * Math.sin(odd * turns[k]), 0)) / size;
    };
    let [low, high] = [-1, half];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (1 - within(middle) <= (2 - 2 * SHARE) * tail) high = middle; else low = middle;
    }
    return high * step;
  };

  /* Where a falling function crosses a limit between `low` and `far`: by secants, of which one end counts half when it stays. */
  const crossing = (beyond, limit, low, far) => {
    let [high, over, under, last] = [far, beyond(low) - limit, beyond(far) - limit, 0];
    if (over <= 0 && low) return crossing(beyond, limit, 0, far);
    for (let n = 0; n < 60 && high - low > 2e-14 * far; n += 1) {
      const place = n % 8 < 6 && over > under ? low + (high - low) * over / (over - under) : (low + high) / 2, here = beyond(place) - limit;
      if (Math.min(place - low, high - place) <= 0) return place;
      if (here > 0) { [low, over] = [place, here]; if (last > 0) under /= 2; } else { [high, under] = [place, here]; if (last < 0) over /= 2; }
      last = here;
    }
    return (low + high) / 2;
  };
  /* A limit for all errors, with a normal part added; null: too much work. */
  const blurred = (sum, around, tail) => {
    const blur = sum.error / sum.blur, base = 2 * Math.PI / around;
    const count = Math.ceil(Math.sqrt(-2 * Math.log(FAINT * tail)) / (blur * base));
    if (!Number.isFinite(around) || count > MOST_BLURRED) return null;
    const terms = Array.from({ length: count }, (_, k) => {
      const x = base * (k + 1);
      return [x, sum.phi(x) * Math.exp(-((x * blur) ** 2) / 2) / x];
    });
    const beyond = (q) => {
      let found = 0;
      for (const [x, each] of terms) found += each * Math.sin(x * q);
      return 1 - (2 * q + 4 * found) / around;
    };
    let far = around / 2; /* each limit is a little higher than the one before, and crossed a little earlier */
    return Math.min(...MARGINS.map((margin, n) => {
      const found = crossing(beyond, (2 - SHARE) * tail * above(-margin), n ? 0.95 * far : 0, far);
      far = Math.min(far, found * (1 + 1e-9));
      return margin * blur + found;
    }));
  };

  /* `sum`: its standard error, weights of leaves, φ, the largest φ from a frequency on, log E e^{tx} or more, and how many times smaller the normal part is. */
  const least = (sum, tail) => {
    if (!sum.error) return 0;
    const step = tail < LEAST || !sum.lattice ? null : stepOf(sum.leaves);
    return step === null ? null : onSteps(sum, sum.around(tail), step, tail);
  };
  const wide = (sum, tail) => (!sum.error ? 0 : tail < LEAST ? null : blurred(sum, sum.around(LEFT * tail, sum.error / sum.blur), tail));
  /* How many of so many simulated |e| lie within what they keep but for 2·tail of the time: so few do once in 1,000,000 times. */
  const rank = (size, tail) => {
    let [beyond, log, all] = [0, size * Math.log1p(-2 * tail), 0];
    while (beyond < size && (all += Math.exp(log)) <= 1e-6) {
      log += Math.log((size - beyond) / (beyond + 1)) + Math.log(2 * tail) - Math.log1p(-2 * tail);
      beyond += 1;
    }
    return beyond ? size - beyond + 1 : null;
  };
  const simulated = (errors, tail) => {
    const place = rank(errors.length, tail);
    return place === null ? null : errors.slice().sort()[place - 1];
  };
  const around = (sum) => (tail, blur = 0) => proved(sum, (1 - 2 * SHARE) * tail, blur) + proved(sum, SHARE * tail / 2, blur);
  return { normal, wave, tilted, least, wide, around, proved, simulated };
})();
