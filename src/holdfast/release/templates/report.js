(() => {
  const collator = new Intl.Collator(undefined, { numeric: true });
  const amount = (text) => parseFloat(text.replace(/,/g, "").replace("\u2212", "-"));
  const make = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
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
    for (const other of others) other.removeAttribute("aria-sort");
    holder.setAttribute("aria-sort", down ? "descending" : "ascending");
    for (const other of others) other.firstElementChild.removeAttribute("aria-label");
    const words = `${holder.textContent}, sorted ${down ? "down" : "up"}`;
    holder.firstElementChild.setAttribute("aria-label", words);
    return down;
  };
  const button = (holder, action) => {
    const made = make("button", holder.textContent);
    made.type = "button";
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
  const names = (row) => [...row.cells].filter((each) => each.matches("th")).map((each) => each.textContent).join(" ");
  const filter = (article, wanted, told) => {
    const words = wanted.trim().toLowerCase();
    let found = 0;
    const show = (node, all) => {
      let any = false;
      for (const child of node.children) {
        if (child.matches("details")) {
          const name = child.firstElementChild.firstElementChild.textContent.toLowerCase();
          const named = !child.matches(".part") && words !== "" && name.includes(words);
          const inside = show(child, all || named);
          child.hidden = words !== "" && !(inside || all || named);
          if (named) found += 1;
          if (words !== "") child.open = inside && !named && !all ? true : child.open;
          any = any || !child.hidden;
        } else if (child.matches("table")) {
          for (const row of child.tBodies[0].rows) {
            const hit = words === "" || names(row).toLowerCase().includes(words);
            row.hidden = !(hit || all);
            if (hit && words !== "") found += 1;
            any = any || !row.hidden;
          }
        } else if (child.matches(".tree")) any = show(child, all) || any;
      }
      return any;
    };
    show(article.querySelector(".rows"), false);
    told.textContent = words === "" ? "" : `${found.toLocaleString("en")} found`;
  };
  for (const article of document.querySelectorAll(".figures")) {
    const bar = make("div", "");
    bar.className = "bar";
    const label = make("label", "Filter by name");
    const input = make("input", "");
    input.type = "search";
    label.append(input);
    const told = make("output", "");
    let waiting = 0;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => filter(article, input.value, told), 120);
    });
    bar.append(label);
    if (article.querySelector(".rows details")) {
      for (const [words, open] of [["Open all", true], ["Close all", false]]) {
        const made = make("button", words);
        made.type = "button";
        made.addEventListener("click", () => {
          for (const each of article.querySelectorAll(".rows details")) each.open = open;
        });
        bar.append(made);
      }
    }
    bar.append(told);
    article.querySelector(".rows").before(bar);
    for (const tree of article.querySelectorAll(".tree")) sortTree(tree);
    for (const table of article.querySelectorAll("table")) if (!table.closest(".tree")) sortTable(table);
  }
})();
