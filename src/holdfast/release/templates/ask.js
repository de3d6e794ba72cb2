/* What the page answers: window.holdfast, for people at the console, for scripts and for the form of the page. */
const asked = (() => {
  const told = JSON.parse(document.getElementById("data").textContent), made = new Map();
  const table = (name) => {
    const found = name === undefined ? (told.length === 1 ? told[0] : null) : told.find((each) => each.name === name);
    if (!found) tables.refuse(`name one of the tables: ${told.map((each) => each.name).join(", ")}`);
    if (!made.has(found)) made.set(found, tables.read(found));
    const ready = made.get(found);
    return ready.held ? ready : tables.refuse(`${found.name} has ${found.rows.toLocaleString("en")} rows, which are not on this page: choose ${found.csv}`);
  };
  return { told, table };
})();
window.holdfast = Object.freeze({
  estimate: (where, confidence = 0.95, table = undefined) => tables.estimate(asked.table(table), where, confidence),
});
