/* What the page answers: window.holdfast, for people at the console, for scripts and for the form of the page. */
const asked = (() => {
  const told = JSON.parse(document.getElementById("data").textContent), made = new Map();
  const found = (name) => {
    const one = name === undefined || name === null ? (told.length === 1 ? told[0] : null) : told.find((each) => each.name === name);
    return one ?? tables.refuse(`name one of the tables: ${told.map((each) => each.name).join(", ")}`);
  };
  const table = (name) => {
    const one = found(name);
    if (!made.has(one.name) && one.held) made.set(one.name, tables.read(one));
    return made.get(one.name) ?? tables.refuse(`${one.name} has ${one.rows.toLocaleString("en")} rows, which are not on this page: choose ${one.csv}`);
  };
  /* Rows of a table too large for the page, from its CSV: single figures, with the intervals on file. */
  const fromCsv = (name, text) => {
    const one = found(name), rows = tables.cells(text, ",");
    const head = rows.shift() ?? [], at = (column) => head.indexOf(column);
    if (["level", ...one.columns, one.figure].some((column) => at(column) < 0)) tables.refuse(`this file is not ${one.csv}: columns are missing`);
    const names = ["level", ...one.columns, ...one.labels.map((each) => `${each}_label`)].filter((each) => at(each) >= 0);
    const ready = { ...one, held: true, known: "file", texts: Object.create(null), codes: Object.create(null), rows: rows.length };
    for (const column of names) {
      const number = new Map();
      ready.codes[column] = Int32Array.from(rows, (each) => {
        const word = each[at(column)];
        if (word === "") return -1;
        if (!number.has(word)) number.set(word, number.size);
        return number.get(word);
      });
      ready.texts[column] = [...number.keys()];
    }
    const numbers = (column, none) => Float64Array.from(rows, (each) => (each[at(column)] ? Number(each[at(column)]) / one.unit : none));
    const [low, high] = ["low", "high"].map((end) => (one.figure === "value" ? end : `${one.figure}_${end}`));
    Object.assign(ready, { value: numbers(one.figure, NaN), low: numbers(low, -Infinity), high: numbers(high, Infinity) });
    if (rows.length !== one.rows) tables.refuse(`${one.csv} has ${one.rows} rows, and this file has ${rows.length}`);
    made.set(one.name, ready);
    return ready;
  };
  return { told, table, fromCsv };
})();
window.holdfast = Object.freeze({
  estimate: (where, confidence, table) => tables.estimate(asked.table(table), where, confidence),
  ratio: (where, to, confidence, table) => comparing.ratio(asked.table(table), where, to, confidence),
  difference: (first, second, confidence, table) => comparing.difference(asked.table(table), first, second, confidence),
  larger: (first, second, table) => comparing.larger(asked.table(table), first, second),
  rank: (wheres, confidence, table) => comparing.rank(asked.table(table), wheres, confidence),
});
