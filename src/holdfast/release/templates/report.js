(() => {
  const collator = new Intl.Collator(undefined, { numeric: true });
  const amount = (text) => parseFloat(text.replace(/,/g, "").replace("\u2212", "-"));
  const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
  const compare = (a, b) => {
    const [x, y] = [amount(a), amount(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? collator.compare(a, b) : x - y;
  };
  const sorted = (nodes, text, down) => {
    const keyed = nodes.map((node) => [text(node), node]);
    keyed.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
    const anchor = keyed[0] && keyed[0][1].parentNode;
    if (anchor) anchor.append(...keyed.map((each) => each[1]));
  };
  const cell = (row, column) => (row.children[column] ? row.children[column].firstChild : null)?.textContent ?? "";
  const turn = (holder, others) => {
    const down = holder.getAttribute("aria-sort") === "ascending";
    for (const other of others) {
      other.removeAttribute("aria-sort");
      other.firstElementChild.removeAttribute("aria-label");
    }
    holder.setAttribute("aria-sort", down ? "descending" : "ascending");
    holder.firstElementChild.setAttribute("aria-label", `${holder.textContent}, sorted ${down ? "down" : "up"}`);
    return down;
  };
  const button = (holder, action) => {
    const made = make("button", holder.textContent, { type: "button" });
    made.addEventListener("click", action);
    holder.replaceChildren(made);
  };
  const sortTable = (table) => {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => button(head, () => {
      const down = turn(head, heads);
      sorted([...table.tBodies[0].rows], (row) => cell(row, column), down);
    }));
  };
  const sortTree = (tree) => {
    const heading = tree.querySelector(".heading");
    heading.removeAttribute("aria-hidden");
    const heads = [...heading.children].slice(0, 2);
    heads.forEach((head, column) => button(head, () => {
      const down = turn(head, heads);
      for (const holder of [tree, ...tree.querySelectorAll("details:not(.part)")]) {
        const open = [...holder.children].filter((child) => child.matches("details:not(.part)"));
        if (open.length) sorted(open, (node) => cell(node.firstElementChild, column), down);
      }
      for (const body of tree.querySelectorAll("tbody")) {
        sorted([...body.rows], (row) => (column ? row.querySelector("td") : row.cells[0]).textContent, down);
      }
    }));
  };
  const named = (item) => (item.matches("tr") ? [...item.cells].filter((each) => each.matches("th")).map((each) => each.textContent).join(" ")
    : item.matches(".part") ? "" : item.firstElementChild.firstElementChild.textContent);
  /* What is named, all below it and all above it are shown; what is above is opened. */
  const filter = (article, wanted, told) => {
    const words = wanted.trim().toLowerCase(), items = [...article.querySelectorAll(".rows tbody tr, .rows details")];
    const found = new Set(items.filter((item) => words !== "" && named(item).toLowerCase().includes(words))), shown = new Set(found);
    for (const item of found) {
      for (const below of item.querySelectorAll("tr, details")) shown.add(below);
      for (let above = item.parentElement.closest("details"); above; above = above.parentElement.closest("details")) {
        shown.add(above);
        if (!found.has(above)) above.open = true;
      }
    }
    for (const item of items) item.hidden = words !== "" && !shown.has(item);
    told.textContent = words === "" ? "" : `${found.size.toLocaleString("en")} found`;
  };
  for (const article of document.querySelectorAll(".figures")) {
    const bar = make("div", "", { className: "bar" }), label = make("label", "Filter by name"), input = make("input", "", { type: "search" }), told = make("output", "");
    let waiting = 0;
    label.append(input);
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => filter(article, input.value, told), 120);
    });
    bar.append(label);
    if (article.querySelector(".rows details")) {
      for (const [words, open] of [["Open all", true], ["Close all", false]]) {
        const made = make("button", words, { type: "button" });
        made.addEventListener("click", () => article.querySelectorAll(".rows details").forEach((each) => { each.open = open; }));
        bar.append(made);
      }
    }
    bar.append(told);
    article.querySelector(".rows").before(bar);
    for (const tree of article.querySelectorAll(".tree")) sortTree(tree);
    for (const table of article.querySelectorAll("table")) if (!table.closest(".tree")) sortTable(table);
  }
})();
