/* A table on the page: what names mean, and what is known of a sum of true figures. As in holdfast's certificate room. */
const tables = (() => {
  const unrun = (runs) => {
    const found = [];
    let last = 0;
    for (let i = 0; i < runs.length; i += 2) for (let k = 0; k < runs[i + 1]; k += 1) found.push(last += runs[i]);
    return found;
  };
  const numbers = (told) => {
    if (Array.isArray(told)) return Float64Array.from(told);
    if (typeof told !== "string") return "all" in told ? new Float64Array(told.n).fill(Number(told.all)) : Float64Array.from(unrun(told.runs));
    const bytes = bytesOf(told), view = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
  };
  const bytesOf = (told) => Uint8Array.from(atob(told.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  const sparse = (told) => {
    if (!told) return null;
    const start = [0];
    for (const size of unrun(told.sizes)) start.push(start[start.length - 1] + size);
    return { start, at: Int32Array.from(unrun(told.at)), sign: numbers(told.sign) };
  };
  const LABEL = "_label", NEAR = 1e-6;
  const refuse = (words) => { throw new Error(words); };
  const quoted = (each) => `“${each}”`;

  /* The cells of lines, quoted or not. */
  const cells = (text, separators) => {
    const rows = [[]], cell = new RegExp(`(?:"((?:[^"]|"")*)"|([^"${separators}\\r\\n]*))([${separators}]|\\r?\\n|$)`, "g");
    for (const [, quoted, plain, end] of text.matchAll(cell)) {
      rows[rows.length - 1].push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
      if (end.endsWith("\n")) rows.push([]);
    }
    if (rows[rows.length - 1].join("") === "") rows.pop(); /* what follows the last line end */
    return rows;
  };

  const read = (told) => {
    const table = { ...told };
    if (!told.held) return table;
    table.texts = Object.create(null); table.codes = Object.create(null);
    for (const [name, column] of Object.entries(told.names)) {
      table.texts[name] = column.texts;
      table.codes[name] = Int32Array.from(unrun(column.codes));
    }
    for (const name of ["value", "low", "high"]) table[name] = numbers(told[name]);
    if (told.known === "nothing") return table;
    for (const name of ["centre", "least", "most"]) table[name] = numbers(told[name]);
    table.sums = sparse(told.sums);
    if (told.tree) {
      const parents = unrun(told.tree.parents), order = [], below = parents.map(() => []);
      parents.forEach((parent, v) => (parent < 0 ? order : below[parent]).push(v));
      for (let i = 0; i < order.length; i += 1) order.push(...below[order[i]]);
      table.tree = { parents, order, inner: order.filter((v) => below[v].length), by: told.tree.by };
    }
    if (told.law?.own) {
      const { rest, covariance, drawn, bytes } = told.law, kinds = { "<i1": Int8Array, "<i2": Int16Array, "<f8": Float64Array };
      table.law = { ...told.law, rest: numbers(rest), covariance: numbers(covariance), drawn: drawn && new kinds[bytes](bytesOf(drawn).buffer) };
    } else if (told.law) {
      table.law = { ...told.law, which: Int32Array.from(unrun(told.law.which)), rows: sparse(told.law.rows), told: sparse(told.law.told) };
    }
    table.noise = noiseOf(table.law);
    return table;
  };

  /* --- what names mean */

  const linkedTable = (table, where) => {
    if (!table.linked.length) return null;
    if (typeof where.table === "string") return where.table;
    const asked = Object.keys(where).filter((name) => name !== "table" && !table.places.includes(name));
    const meant = table.linked.filter(([, axes]) => asked.every((name) => axes.includes(name)));
    if (meant.length !== 1) refuse(`say which table is meant: ${table.linked.map(([name]) => quoted(name)).join(" or ")}`);
    return meant[0][0];
  };
  const levelNamed = (table, named, of) => {
    const deep = table.places.reduce((found, place, d) => (named.includes(place) ? d + 1 : found), 0);
    const wanted = named.filter((name) => !table.places.includes(name) && !(table.linked.length && name === "table"));
    const holding = table.margins.filter((each) => (of === null || each.table === of) && each.places >= deep && wanted.every((name) => each.told.includes(name)));
    if (!holding.length) refuse(`no level has all of ${named.map(quoted).join(", ")}`);
    const smallest = holding.filter((each) => each.places === holding[0].places && each.axes.length === holding[0].axes.length);
    return (smallest.find((each) => wanted.every((name) => each.axes.includes(name))) ?? smallest[0]).level;
  };
  const rowsWhere = (table, where) => {
    const chosen = new Uint8Array(table.rows).fill(1), named = Object.create(null);
    for (const [column, wanted] of Object.entries(where)) {
      if (column === "level" || !Object.hasOwn(table.codes, column)) refuse(`there is no column ${quoted(column)}`);
      const values = Array.isArray(wanted) ? wanted.map(String) : [String(wanted)], found = table.codes[column];
      const places = (table.places_of ??= Object.create(null))[column] ??= new Map(table.texts[column].map((text, code) => [text, code]));
      const codes = new Set(values.map((value) => places.get(value) ?? refuse(`${quoted(column)} has no value ${quoted(value)}`)));
      for (let i = 0; i < found.length; i += 1) if (!codes.has(found[i])) chosen[i] = 0;
      const plain = table.labels.find((name) => name + LABEL === column) ?? column;
      named[plain] = wanted;
    }
    const level = table.texts.level.indexOf(levelNamed(table, Object.keys(named), linkedTable(table, named)));
    table.codes.level.forEach((code, i) => { if (code !== level) chosen[i] = 0; });
    if (table.rows > table.outputs && table.places.length) { /* a total over categories stands for them */
      const categories = table.columns.filter((name) => !table.places.includes(name));
      const asked = categories.some((name) => name in named);
      for (let i = 0; i < table.rows; i += 1) {
        const behind = i >= table.outputs;
        if (behind === asked || (behind && categories.some((name) => table.codes[name][i] >= 0))) chosen[i] = 0;
      }
    }
    if (!chosen.includes(1)) refuse("no row has these names together");
    return Float64Array.from(chosen);
  };

  /* --- what is known of a sum of true figures with these weights */

  const times = (a, b) => {
    let found = 0;
    for (let i = 0; i < a.length; i += 1) if (a[i]) found += a[i] * b[i];
    return found;
  };
  const limits = (table, weights) => {
    let [low, high] = [0, 0];
    for (let i = 0; i < weights.length; i += 1) {
      if (!weights[i]) continue;
      const [a, b] = [weights[i] * table.least[i], weights[i] * table.most[i]];
      low += Math.min(a, b);
      high += Math.max(a, b);
    }
    return [low, high];
  };
  const certain = (table, weights) => {
    const found = limits(table, weights);
    if (!table.tree) return found;
    const { parents, order, inner, by } = table.tree, leaves = Float64Array.from(weights);
    for (const v of order) {
      if (parents[v] >= 0) for (let k = 0; k < by; k += 1) leaves[v * by + k] += leaves[parents[v] * by + k];
    }
    for (const v of inner) leaves.fill(0, v * by, (v + 1) * by);
    const other = limits(table, leaves);
    return [Math.max(found[0], other[0]), Math.min(found[1], other[1])];
  };
  const ofOutputs = (table, weights) => {
    const found = weights.slice(0, table.outputs);
    for (let r = 0; table.sums && r + 1 < table.sums.start.length; r += 1) {
      const weight = weights[table.outputs + r];
      if (weight) for (let j = table.sums.start[r]; j < table.sums.start[r + 1]; j += 1) found[table.sums.at[j]] += weight * table.sums.sign[j];
    }
    return found;
  };
  const within = (ends, limit) => ends.map((end) => Math.min(Math.max(end, limit[0]), limit[1]));
  const wholeEnds = ([low, high]) => {
    const inner = Number.isFinite(low) ? Math.ceil(low - NEAR) : low, outer = Number.isFinite(high) ? Math.floor(high + NEAR) : high;
    return inner <= outer ? [inner, outer] : [Math.floor(low), Math.ceil(high)];
  };

  const known = (table, asked, noise = table.noise) => {
    const first = asked.findIndex(Boolean), alone = first >= 0 && first === asked.findLastIndex(Boolean) ? first : null;
    if (table.known !== "law" && table.known !== "bounds") {
      const why = table.known === "simulation" ? "Sums of this table take a simulation that is too long for a page" : "Only single figures are answered here";
      if (alone === null) refuse(`${why}: ask Python, hf.load(…).table().estimate(…).`);
      return { table, asked, alone, value: times(asked, table.value), error: null, sure: true, certain: [-Infinity, Infinity] };
    }
    const weights = ofOutputs(table, asked);
    const sum = { table, asked, weights, value: times(asked, table.value), certain: certain(table, weights), alone };
    sum.noise = noise(weights);
    sum.error = sum.noise ? sum.noise.error : null;
    sum.centre = times(weights, table.centre);
    sum.sure = !sum.noise || sum.certain[0] === sum.certain[1];
    return sum;
  };
  /* Whether other figures tell a sum: all that is left of its error is rounding. */
  const rounded = ({ table, weights, sure, error }) => sure || error <= 1e-9 * table.law.unit * Math.sqrt(Math.max(...table.law.variance)) * weights.reduce((found, each) => Math.max(found, Math.abs(each)), 0);
  const far = (noise, tail) => {
    if (noise.normal) return noise.error * reaches.normal(tail);
    const none = () => refuse("The error of this sum cannot be computed here: ask Python, hf.load(…).table().estimate(…).");
    if (noise.errors) return reaches.simulated(noise.errors.map(Math.abs), tail) ?? none();
    const place = `${noise.key}/${tail}`; /* many sums have the same noise: ranks ask for all pairs */
    if (!noise.fars.has(place)) {
      const least = reaches.least(noise, tail);
      noise.fars.set(place, [least ?? reaches.wide(noise, tail), least === null && noise.studied === true]);
    }
    const [found, simulated] = noise.fars.get(place);
    noise.simulated = simulated; /* by Python, which has as much time as that takes */
    return found ?? none();
  };
  const interval = (sum, confidence) => {
    const { table, asked, alone } = sum;
    if (alone !== null && confidence === table.confidence) {
      return [asked[alone] * table.low[alone], asked[alone] * table.high[alone]].sort((a, b) => a - b);
    }
    if (sum.sure) return sum.certain;
    const reach = far(sum.noise, (1 - confidence) / 2);
    sum.simulated = sum.noise.simulated;
    const ends = within([sum.centre - reach, sum.centre + reach], sum.certain);
    return sum.weights.some((each) => each !== Math.round(each)) ? ends : wholeEnds(ends);
  };
  const told = (value, error, [low, high], confidence, centre = null) => ({ value, low, high, standard_error: error, confidence, centre });

  const weightsOf = (table, asked) => {
    if (!Array.isArray(asked) && !(asked instanceof Float64Array)) return rowsWhere(table, asked ?? refuse("say which rows, such as {zone: \"A\"}"));
    if (asked.length !== table.rows || !asked.every(Number.isFinite)) refuse(`weights must be ${table.rows} numbers, one for each row`);
    return Float64Array.from(asked);
  };
  const checked = (confidence) => (Number.isFinite(confidence) && confidence > 0 && confidence < 1 ? confidence : refuse("confidence must lie between 0 and 1"));
  /* In the unit of a column that is added up: figures and noise are steps of it. */
  const answered = (sum, confidence) => {
    const unit = sum.table.unit, ends = interval(sum, checked(confidence)).map((end) => end * unit);
    return { ...told(sum.value * unit, sum.error === null ? null : sum.error * unit, ends, confidence, sum.noise ? sum.centre * unit : null), simulated: sum.simulated === true };
  };
  const estimate = (table, asked, confidence = 0.95) => answered(known(table, weightsOf(table, asked)), confidence);
  return { cells, read, known, rounded, interval, far, within, certain, weightsOf, answered, estimate, told, checked, refuse, times };
})();
