/* Ratios and ranks, and how sure it is which of two sums is larger. */
const comparing = (() => {
  const FINE = 1 / 1000.5, ROUNDING = 1e-12, RARE = 1e-3, LEAST = 2e-8, MOST_RANKED = 40;
  const RARE_HERE = "So rare an error cannot be computed here: ask Python.";

  const quotient = (above, below) => {
    if (below[0] < 0 || below[1] <= 0) return [-Infinity, Infinity];
    if (below[0] === 0) return [above[0] >= 0 ? above[0] / below[1] : -Infinity, Infinity];
    return [above[0] / below[Number(above[0] >= 0)], above[1] / below[Number(above[1] < 0)]];
  };
  const fieller = (a, b, [first, both, second], factor) => {
    const k = factor ** 2, square = b * b - k * second, middle = a * b - k * both, rest = a * a - k * first;
    if (square <= 0) return [-Infinity, Infinity];
    const root = Math.sqrt(Math.max(middle ** 2 - square * rest, 0));
    return [(middle - root) / square, (middle + root) / square];
  };
  /* The ends of a ratio: on the way from it to either side, what is short and not left out. */
  const ended = (values, sizes, left) => [-Math.PI / 2, Math.PI / 2].map((last) => {
    const middle = Math.atan(values[0] / values[1]), ways = [[middle, last]];
    while (ways.length) {
      const [first, far] = ways.pop(), centre = (first + far) / 2;
      if (left(first, far)) continue;
      if (Math.abs(far - first) <= FINE * Math.abs(far - middle) || Math.abs(far - middle) <= ROUNDING) return Math.tan(far) * sizes[0] / sizes[1];
      ways.push([first, centre], [centre, far]);
    }
    throw new Error("the way at the ratio itself is never left out");
  });
  /* Directions of (a, b) that the law of the errors leaves; as `ratio_by_law` in Python. */
  const byLaw = (above, below, tail) => {
    const sizes = [above.error, below.error], of = above.table.noise.both(above.weights, below.weights);
    const values = [above.centre / sizes[0], below.centre / sizes[1]], near = ROUNDING * (Math.abs(values[0]) + Math.abs(values[1]));
    const turned = (x, y) => of(x / sizes[0], y / sizes[1]);
    const apart = (angle) => Math.abs(values[0] * Math.cos(angle) - values[1] * Math.sin(angle));
    const reach = (sum, some) => reaches.wide(sum, some) ?? tables.refuse(RARE_HERE);
    if (Math.abs(values[1]) <= reach(turned(0, 1), tail) + near) return [-Infinity, Infinity];
    return ended(values, sizes, (first, far) => {
      const centre = (first + far) / 2, [cos, sin] = [Math.cos(centre), Math.sin(centre)];
      const across = turned(sin, cos), more = across.error ? Math.sin(Math.abs(far - first) / 2) * reaches.proved(across, RARE * tail) : 0;
      const away = Math.min(apart(first), apart(far)) - near - more, here = turned(cos, -sin), rare = (1 - RARE) * tail;
      return !here.error ? away > 0 : away > reaches.proved(here, rare) || (away > 0 && away > reach(here, rare));
    });
  };
  /* The same for simulated errors; as `studied_ratio` in Python. */
  const studied = (above, below, tail) => {
    const spread = (errors) => {
      const mean = errors.reduce((found, each) => found + each, 0) / errors.length;
      return Math.sqrt(errors.reduce((found, each) => found + (each - mean) ** 2, 0) / errors.length) || 1;
    };
    const sums = [above, below], sizes = sums.map((each) => spread(each.noise.errors)), drawn = sums.map((each, i) => each.noise.errors.map((one) => one / sizes[i]));
    const values = sums.map((each, i) => each.centre / sizes[i]), near = ROUNDING * (Math.abs(values[0]) + Math.abs(values[1]));
    const reach = (errors) => reaches.simulated(errors, tail) ?? tables.refuse(RARE_HERE);
    const turned = (angle) => {
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      return [Math.abs(values[0] * cos - values[1] * sin), drawn[0].map((each, k) => Math.abs(each * cos - drawn[1][k] * sin))];
    };
    if (Math.abs(values[1]) <= reach(drawn[1].map(Math.abs)) + near) return [-Infinity, Infinity];
    return ended(values, sizes, (first, far) => {
      const [[here, some], [there, others]] = [turned(first), turned(far)];
      return Math.min(here, there) > reach(some.map((each, k) => Math.max(each, others[k]))) + near;
    });
  };
  const added = (a, b, times = 1) => a.map((each, i) => each + times * b[i]);
  const ratio = (table, where, to, confidence = 0.95) => {
    const [above, below] = [where, to].map((each) => known(table, each));
    const tail = (1 - tables.checked(confidence)) / 2, [a, b] = [above.centre, below.centre];
    let error = null, ends;
    if (above.noise) {
      const first = above.error ** 2, second = below.error ** 2, both = (table.noise(added(above.weights, below.weights)).error ** 2 - first - second) / 2;
      const most = first + (a / b) ** 2 * second, square = most - 2 * (a / b) * both;
      if (b) error = square > ROUNDING * most ? Math.sqrt(square) / Math.abs(b) : 0;
      const half = (sum) => [sum.centre - tables.far(sum.noise, tail / 2), sum.centre + tables.far(sum.noise, tail / 2)];
      if (tables.rounded(above) || tables.rounded(below)) ends = quotient(tables.interval(above, confidence), tables.interval(below, confidence));
      else if (b && above.weights.every((each, i) => each * b === below.weights[i] * a)) ends = [a / b, a / b]; /* the same noise */
      else {
        if (above.noise.normal) ends = fieller(a, b, [first, both, second], reaches.normal(tail));
        else if (above.noise.errors) ends = studied(above, below, tail);
        else ends = table.law.kind === "moved" ? byLaw(above, below, tail) : quotient(half(above), half(below));
        const certain = quotient(above.certain, below.certain);
        ends = ends[1] < certain[0] || certain[1] < ends[0] ? certain : tables.within(ends, certain);
      }
    } else ends = quotient(tables.interval(above, confidence), tables.interval(below, confidence));
    const part = above.certain[0] >= 0 && tables.certain(table, added(below.weights, above.weights, -1))[0] >= 0;
    return tables.told(below.value ? above.value / below.value : NaN, error, part ? tables.within(ends, [0, 1]) : ends, confidence);
  };

  const known = (table, where) => tables.known(table, tables.weightsOf(table, where));
  const apart = (first, second) => {
    const { table, asked, weights } = first, together = table.noise?.both && weights && (() => table.noise.both(weights, second.weights)(1, -1));
    return tables.known(table, added(asked, second.asked, -1), together);
  };
  const difference = (table, first, second, confidence = 0.95) => tables.answered(apart(known(table, first), known(table, second)), confidence);
  /* The smallest tail whose interval leaves 0 out: so often at most is it wrong to call the larger one larger. */
  const larger = (table, first, second) => {
    const sum = apart(known(table, first), known(table, second)), first_is = sum.centre > 0;
    const found = (wrong) => ({ larger: sum.centre === 0 ? null : first_is ? "first" : "second", wrong });
    if (sum.certain[0] > 0 || sum.certain[1] < 0) return { larger: sum.certain[0] > 0 ? "first" : "second", wrong: 0 };
    if (sum.sure || sum.centre === 0) return found(sum.sure ? 1 : 0.5);
    if (first_is ? sum.certain[1] === 0 : sum.certain[0] === 0) return { larger: null, wrong: 0.5 }; /* the other way is certain */
    const whole = sum.weights.every((each) => each === Math.round(each)), size = Math.abs(sum.centre);
    const far = (tail) => (sum.noise.normal ? tables.far(sum.noise, tail)
      : sum.noise.errors ? reaches.simulated(sum.noise.errors.map(Math.abs), tail) ?? Infinity
      : reaches.least(sum.noise, tail) ?? reaches.wide(sum.noise, tail) ?? (sum.noise.tilted ? reaches.proved(sum.noise, tail) : Infinity));
    const shown = (tail) => (whole ? Math.ceil(size - far(tail) - 1e-6) : size - far(tail)) > 0;
    if (!shown(0.49)) return found(0.5);
    let [low, high] = [Math.log(LEAST), Math.log(0.49)];
    if (shown(LEAST)) return found(LEAST);
    for (let n = 0; n < 24; n += 1) {
      const middle = (low + high) / 2;
      if (shown(Math.exp(middle))) high = middle; else low = middle;
    }
    return found(Math.exp(high));
  };
  /* Places that every sum may have, all at once: each pair is compared at its share of what may be missed. */
  const rank = (table, wheres, confidence = 0.95) => {
    if (!(wheres?.length >= 2 && wheres.length <= MOST_RANKED)) tables.refuse(`ranks are told of 2 to ${MOST_RANKED} sums`);
    const pairs = wheres.length * (wheres.length - 1) / 2, each = 1 - (1 - tables.checked(confidence)) / pairs;
    const sums = wheres.map((where) => known(table, where));
    const found = sums.map(({ value }) => ({ value: value * table.unit, rank: 1 + sums.filter((other) => other.value > value).length, low: 1, high: wheres.length, confidence }));
    sums.forEach((first, i) => sums.slice(0, i).forEach((second, j) => {
      const [low, high] = tables.interval(apart(first, second), each), [up, down] = low > 0 ? [i, j] : high < 0 ? [j, i] : [];
      if (up === undefined) return;
      found[up].high -= 1;
      found[down].low += 1;
    }));
    return found;
  };
  return { ratio, difference, larger, rank };
})();
