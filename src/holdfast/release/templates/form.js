/* The form: rows that somebody picks, a question about them, the answer in words and as a picture, and a link to it. */
(() => {
  const form = document.getElementById("question");
  if (!form) return;
  const SHOWN = 200, FEW = 4, SVG = "http://www.w3.org/2000/svg";
  const make = (tag, words = "", more = {}) => Object.assign(document.createElement(tag), { textContent: words }, more);
  const at = (id) => document.getElementById(id);
  /* Columns have any name, also __proto__ and constructor: what is kept by name has no prototype. */
  const bare = (pairs = []) => pairs.reduce((found, [name, value]) => { found[name] = value; return found; }, Object.create(null));
  const state = { table: asked.told[0].name, ask: "sum", a: bare(), b: bare(), c: 0.95 };
  const places = (given, width) => {
    const value = given + 0 === 0 ? 0 : given;
    const digits = width > 0 && Number.isFinite(width) && value % 1 ? Math.min(Math.max(Math.min(1 - Math.floor(Math.log10(width)), 6 - Math.floor(Math.log10(Math.abs(value)))), 0), 12) : 0;
    return Number.isFinite(value) ? value.toLocaleString("en", { maximumFractionDigits: value % 1 ? Math.max(digits, 2) : 0 }).replace("-", "\u2212") : value > 0 ? "no upper limit" : value < 0 ? "no lower limit" : "not known";
  };
  const shown = ({ value, low, high }) => [places(value, high - low), `${places(low, high - low)} to ${places(high, high - low)}`];
  const named = (where) => Object.values(where).map((some) => some.slice(0, 4).join(" + ") + (some.length > 4 ? ` and ${some.length - 4} more` : "")).join(", ") || "all";
  /* Values that bounds moved by more than a quarter of their interval, as Python tells them. */
  const moved = ({ value, low, high, centre }) => Number.isFinite(centre ?? NaN) && Math.abs(value - centre) > Math.max((high - low) / 4, 1e-6 * Math.abs(value));
  const USE = "of one figure believe the interval; where figures must add up, keep the value.";
  const movedOf = (rows) => (!rows.some(moved) ? "" : rows.length > 1 ? ` Where a line lies at the edge of its band or outside, bounds moved the value: ${USE}`
    : ` Bounds moved this value; without them it would be ${places(rows[0].centre, rows[0].high - rows[0].low)}: ${USE}`);
  const SIMULATED = " Python measures this error on simulated draws, so that its interval may be some 5 % narrower.";
  const percent = (share) => `${Number((100 * share).toPrecision(6))}\u00a0%`;

  const shape = (picture, tag, given, words = "") => {
    const one = document.createElementNS(SVG, tag);
    for (const [name, size] of Object.entries(given)) one.setAttribute(name, size);
    one.textContent = words;
    picture?.append(one);
    return one;
  };

  /* --- pictures: one row for each answer, its value and a band for its interval --- */
  const drawn = (rows, caption) => {
    const figure = make("figure"), ends = rows.flatMap((row) => [row.value, row.low, row.high, 0]).filter(Number.isFinite);
    const [least, most] = [Math.min(...ends), Math.max(...ends)], place = (x) => 100 * (Math.min(Math.max(x, least), most) - least) / (most - least || 1) || 0;
    const list = make("ul", "", { className: "bands" });
    for (const row of rows) {
      const item = make("li"), [value, between] = shown(row), picture = shape(null, "svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" });
      for (const [kind, from, to, top, high] of [["size", 0, row.value, 3, 6], ["band", row.low, row.high, 0, 12], ["mark", row.value, row.value, 0, 12]]) {
        const [x, end] = [place(Math.min(from, to)), place(Math.max(from, to))];
        shape(picture, "rect", { class: kind, x, y: top, width: Math.max(end - x, 0.4), height: high });
      }
      item.append(row.walk ?? make("bdi", row.name, { className: "name" }), picture, make("span", value, { className: "value" }), make("span", between, { className: "between" }));
      if (row.pick) item.append(row.pick);
      list.append(item);
    }
    figure.append(list, make("figcaption", caption));
    return figure;
  };
  const series = (rows, caption) => {
    const figure = make("figure"), [width, height] = [Math.min(Math.max(form.clientWidth, 280), 720), 220]; /* so that its words have the size of all others */
    const ends = rows.flatMap((row) => [row.value, row.low, row.high]).filter(Number.isFinite), [least, most] = [Math.min(0, ...ends), Math.max(...ends)];
    const x = (i) => 50 + (width - 60) * i / (rows.length - 1), y = (v) => 10 + (height - 40) * (1 - (Math.min(Math.max(v, least), most) - least) / (most - least || 1));
    const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
    const said = `${caption} ${rows.map((row) => `${row.name}: ${shown(row)[0]}`).join("; ")}`, picture = shape(null, "svg", { width, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said });
    shape(picture, "path", { class: "band", d: `${path(rows.map((row, i) => [x(i), y(row.high)]))}${path(rows.map((row, i) => [x(i), y(row.low)]).reverse()).replace("M", "L")}Z` });
    shape(picture, "path", { class: "line", d: path(rows.map((row, i) => [x(i), y(row.value)])) });
    for (const value of [least, most]) shape(picture, "text", { x: 44, y: y(value) + 4, "text-anchor": "end" }, places(value, 1));
    for (const i of new Set([0, rows.length - 1])) shape(picture, "text", { x: x(i), y: height - 8, "text-anchor": i ? "end" : "start" }, rows[i].name);
    figure.append(picture, make("figcaption", caption));
    return figure;
  };
  const ordered = (rows) => rows.length > 2 && rows.every((row) => /^\d{4}(-\d\d){0,2}$/.test(row.name));
  const picture = (rows, caption) => (ordered(rows) ? series([...rows].sort((a, b) => (a.name < b.name ? -1 : 1)), caption) : drawn(rows, caption));

  /* --- what is asked: links, answers --- */
  const link = () => `#q=${encodeURIComponent(JSON.stringify(state))}`;
  const followed = () => {
    if (!location.hash.startsWith("#q=")) return false;
    try {
      const found = JSON.parse(decodeURIComponent(location.hash.slice(3)));
      if ([found.a, found.b].some((where) => typeof (where ?? {}) !== "object" || Array.isArray(where))) return false;
      const wheres = (where) => bare(Object.entries(where ?? {}).map(([name, some]) => [name, [some].flat().map(String)]));
      if (!asked.told.some((each) => each.name === found.table) || !Object.hasOwn(ASKS, found.ask)) return false;
      Object.assign(state, { table: found.table, ask: found.ask, a: wheres(found.a), b: wheres(found.b), c: Number(found.c) || 0.95 });
      return true;
    } catch { return false; }
  };
  const single = (where) => {
    const [name, some] = Object.entries(where).find(([, values]) => values.length > 1) ?? Object.entries(where)[0] ?? tables.refuse("pick some rows first");
    return some.map((value) => bare([...Object.entries(where), [name, [value]]]));
  };
  const covers = (t, c, k = 1) => (t.known === "bounds" ? "These limits are certain. How large the noise is depends on the data, so no narrower ones can be given." : k === 1
    ? `Of 100 intervals that are made like this one, at least ${Number((100 * c).toPrecision(4))} hold the true figure.`
    : `All ${k} intervals hold their true figures together in at least ${Number((100 * c).toPrecision(4))} of 100 cases: each is made at ${(100 * (1 - (1 - c) / k)).toFixed(2)} % (Bonferroni).`);
  const odds = (wrong) => (wrong <= 2e-8 ? "in fewer than 1 of 10,000,000 cases" : `in at most ${(100 * wrong).toPrecision(2)} of 100 cases`);
  const ASKS = {
    sum: ["Sum of the rows", (t, { a, c }) => [[{ name: named(a), ...tables.estimate(t, a, c) }], covers(t, c)]],
    each: ["Each row by itself", (t, { a, c }) => {
      const some = single(a);
      return [some.map((where) => ({ name: named(where), ...tables.estimate(t, where, 1 - (1 - c) / some.length) })), covers(t, c, some.length)];
    }],
    share: ["Share of the rows in those compared with", (t, { a, b, c }) => [[{ name: `${named(a)} of ${named(b)}`, ...comparing.ratio(t, a, b, c) }], covers(t, c)], true],
    ratio: ["Ratio to those compared with", (t, { a, b, c }) => [[{ name: `${named(a)} : ${named(b)}`, ...comparing.ratio(t, a, b, c) }], covers(t, c)], true],
    difference: ["Difference from those compared with", (t, { a, b, c }) => {
      const found = comparing.difference(t, a, b, c), { larger, wrong } = comparing.larger(t, a, b);
      const first = `${named(larger === "first" ? a : b)} is the larger one`;
      const which = larger === null || wrong >= 0.5 ? "Which is larger the figures do not tell." : wrong === 0 ? `${first}: that is certain.`
        : `${first}. If it were not, noise would make it look so ${odds(wrong)}.`;
      return [[{ name: `${named(a)} \u2212 ${named(b)}`, ...found }], `${covers(t, c)} ${which}`];
    }, true],
    rank: ["Rank of each row", (t, { a, c }) => {
      const some = single(a), found = comparing.rank(t, some, c);
      return [found.map((each, i) => ({ name: named(some[i]), value: each.rank, low: each.low, high: each.high })),
        `Rank 1 is the largest. All ranks lie within their ranges together in at least ${Number((100 * c).toPrecision(4))} of 100 cases (Bonferroni over all pairs).`];
    }],
  };
  const answer = () => {
    const place = at("answer");
    try {
      const [rows, words] = ASKS[state.ask][1](asked.table(state.table), state);
      const said = rows.length === 1 ? rows.map((row) => make("p", "", { className: "said" })) : [];
      said.forEach((line) => line.append(make("bdi", rows[0].name), `: ${shown(rows[0])[0]} (${shown(rows[0])[1]} at ${percent(state.c)})`));
      place.replaceChildren(...said, picture(rows, `${words}${rows.some((row) => row.simulated) ? SIMULATED : ""}${movedOf(rows)}`), make("a", "Link to this answer", { href: link() }));
    } catch (refusal) { place.replaceChildren(make("p", refusal.message, { className: "warning" })); }
  };
  const ask = () => {
    try { history.replaceState(null, "", link()); } catch { location.hash = link(); }
    answer();
  };

  /* --- picking rows: by name, by a pasted list, in the picture --- */
  const table = () => { try { return asked.table(state.table); } catch { return null; } };
  const label = (t, column, value) => {
    const named = t.texts[`${column}_label`];
    if (!named) return value;
    const row = t.codes[column].indexOf(t.texts[column].indexOf(value)), code = row < 0 ? -1 : t.codes[`${column}_label`][row];
    return code < 0 ? value : `${value} ${named[code]}`;
  };
  const picker = (side, t) => {
    const holder = at(`pick-${side}`);
    holder.replaceChildren();
    for (const column of t.columns.filter((name) => t.texts[name].length > 1 || name in state[side])) {
      const box = make("details", "", { open: column in state[side] }), summary = make("summary", column), chosen = new Set(state[side][column] ?? []);
      const filter = make("input", "", { type: "search", placeholder: "name" }), list = make("ul", "", { className: "picks" });
      const pasted = make("textarea", "", { rows: 1, placeholder: "codes, by comma or line" });
      const changed = () => {
        if (chosen.size) state[side][column] = [...chosen]; else delete state[side][column];
        summary.textContent = chosen.size ? `${column}: ${named({ column: [...chosen] })}` : column;
      };
      const listed = () => {
        const words = filter.value.trim().toLowerCase(), found = t.texts[column].map((value) => [value, label(t, column, value)]).filter(([, text]) => text.toLowerCase().includes(words));
        list.replaceChildren(...found.slice(0, SHOWN).map(([value, text]) => {
          const item = make("li"), name = make("label"), tick = make("input", "", { type: "checkbox", checked: chosen.has(value) });
          tick.addEventListener("change", () => { chosen[tick.checked ? "add" : "delete"](value); changed(); ask(); });
          name.append(tick, " ", make("bdi", text));
          item.append(name);
          return item;
        }));
        if (found.length > SHOWN) list.append(make("li", `and ${(found.length - SHOWN).toLocaleString("en")} more: filter by name`, { className: "note" }));
      };
      filter.addEventListener("input", listed);
      pasted.addEventListener("change", () => {
        const known = new Map(t.texts[column].flatMap((value) => [[value, value], [label(t, column, value).slice(value.length + 1), value]]));
        const words = pasted.value.split(/[\n\t]+/).flatMap((line) => (known.has(line.trim()) ? [line] : tables.cells(line, ",;").flat())).map((each) => each.trim()).filter(Boolean), strange = words.filter((each) => !known.has(each));
        words.filter((each) => known.has(each)).forEach((each) => chosen.add(known.get(each)));
        changed();
        listed();
        ask();
        if (strange.length) at("answer").prepend(make("p", `Not a value of ${column}: ${strange.slice(0, 5).join(", ")}`, { className: "warning" }));
      });
      const fields = make("div", "", { className: "fields" });
      for (const [words, field] of [["Filter", filter], ["Paste", pasted]]) { const one = make("label", `${words} ${column}`); one.append(field); fields.append(one); }
      box.append(summary, ...(t.texts[column].length > FEW ? [fields] : []), list);
      box.addEventListener("toggle", () => { if (box.open && !list.childElementCount) listed(); });
      if (box.open) listed();
      changed();
      holder.append(box);
    }
  };
  /* The tree to walk: the rows below one place, or those of one level, each with its band. */
  const walk = (t, path, start = false) => {
    const holder = at("walk"), levels = t.places, categories = t.columns.filter((name) => !levels.includes(name));
    const depth = levels.length ? Math.min(path.length, levels.length - 1) : 0, column = levels[depth] ?? t.columns[0], above = levels.slice(0, depth);
    const whole = t.texts.level.length > 1 ? t.codes.level.find((code, i) => t.columns.some((name) => t.codes[name][i] >= 0)) : 0;
    const level = Math.max(path.length ? t.texts.level.indexOf(path[0]) : whole, 0), named = (i) => t.columns.filter((name) => t.codes[name][i] >= 0);
    const find = (plain, rows = []) => { for (let i = 0; i < t.codes.level.length && rows.length < SHOWN; i += 1) {
      if (!levels.length) { if (t.codes.level[i] === level && named(i).length) rows.push(i); continue; }
      const inside = above.every((name, d) => t.codes[name][i] >= 0 && t.texts[name][t.codes[name][i]] === path[d]);
      if (inside && t.codes[column][i] >= 0 && [...levels.slice(depth + 1), ...(plain ? categories : [])].every((name) => t.codes[name][i] < 0)) rows.push(i);
    } return rows; };
    const plainly = find(true), rows = plainly.length ? plainly : find(false), own = (i) => categories.filter((each) => t.codes[each][i] >= 0);
    if (start && rows.length === 1 && depth + 1 < levels.length) { walk(t, [t.texts[column][t.codes[column][rows[0]]]]); return; }
    const crumbs = make("p", "", { className: "crumbs" });
    path.slice(0, depth).forEach((name, d) => {
      const back = make("button", name, { type: "button" });
      back.addEventListener("click", () => { walk(t, path.slice(0, d)); at("walk").querySelector("button")?.focus(); });
      crumbs.append(back, " › ");
    });
    if (levels.length) crumbs.append(make("span", column));
    else if (t.texts.level.length > 1) t.texts.level.forEach((name, k) => {
      const other = make("button", name, { type: "button" });
      if (k === level) other.setAttribute("aria-current", "true");
      other.addEventListener("click", () => walk(t, [name]));
      crumbs.append(other, " ");
    });
    const told = rows.map((i, n) => {
      const name = t.texts[column][t.codes[column][i]], again = n > 0 && own(i).length > 0 && t.codes[column][rows[n - 1]] === t.codes[column][i], deeper = depth + 1 < levels.length && !again;
      const text = levels.length && !own(i).length ? label(t, column, name) : (levels.length ? [column, ...own(i)] : named(i)).map((each) => label(t, each, t.texts[each][t.codes[each][i]])).join(" / ");
      const open = deeper ? make("button", text, { type: "button", className: "name" }) : undefined, pick = make("button", "pick", { type: "button", className: "pick" });
      if (open) open.addEventListener("click", () => { walk(t, [...path.slice(0, depth), name]); at("walk").querySelector("button")?.focus(); });
      pick.setAttribute("aria-label", `pick ${text}`);
      pick.addEventListener("click", () => {
        state.a = levels.length && !own(i).length ? bare([[column, [...new Set([...(state.a[column] ?? []), name])]]]) : bare((levels.length ? [column, ...own(i)] : named(i)).map((each) => [each, [t.texts[each][t.codes[each][i]]]]));
        picker("a", t);
        ask();
      });
      return { name: again && levels.length ? own(i).map((each) => label(t, each, t.texts[each][t.codes[each][i]])).join(" / ") : text, value: t.value[i] * t.unit, low: t.low[i] * t.unit, high: t.high[i] * t.unit, centre: t.known === "law" ? t.centre[i] * t.unit : null, walk: open, pick };
    });
    if (!told.length) { holder.replaceChildren(crumbs); return; }
    const caption = `Bars and lines are values, bands ${t.known === "bounds" ? "limits that are certain" : `${percent(t.confidence)} intervals`}${rows.length === SHOWN ? `; the first ${SHOWN} rows` : ""}.${movedOf(told)}`;
    holder.replaceChildren(crumbs, ordered(told) ? picture(told, caption) : drawn(told, caption));
  };
  const prepared = () => {
    const one = asked.told.find((each) => each.name === state.table), ready = table();
    at("rows-file").hidden = one.held;
    at("asking").hidden = !ready;
    if (!ready) return;
    at("to").hidden = !ASKS[state.ask][2];
    picker("a", ready);
    picker("b", ready);
    walk(ready, [], true);
  };
  const choose = (id, options, value, changed) => {
    at(id).replaceChildren(...options.map(([key, words]) => make("option", words, { value: key, selected: key === value })));
    at(id).addEventListener("change", () => changed(at(id).value));
  };
  const opened = (linked) => {
    if (linked) answer();
    else if (location.hash.startsWith("#q=")) at("answer").replaceChildren(make("p", "This link holds no question about these figures.", { className: "warning" }));
  };
  const started = () => {
    const linked = followed();
    choose("which", asked.told.map((each) => [each.name, each.name]), state.table, (name) => { Object.assign(state, { table: name, a: bare(), b: bare() }); prepared(); at("answer").replaceChildren(); });
    at("which").closest("label").hidden = asked.told.length === 1;
    choose("kind", Object.entries(ASKS).map(([key, [words]]) => [key, words]), state.ask, (name) => { state.ask = name; at("to").hidden = !ASKS[name][2]; ask(); });
    const levels = [...new Set([0.8, 0.9, 0.95, 0.99, state.c])].sort((a, b) => a - b);
    choose("confidence", levels.map((each) => [String(each), percent(each)]), String(state.c), (value) => { state.c = Number(value); ask(); });
    at("rows-file").append(make("input", "", { type: "file", accept: ".csv,text/csv" }));
    at("rows-file").querySelector("input").addEventListener("change", async (event) => {
      try { asked.fromCsv(state.table, await event.target.files[0].text()); prepared(); } catch (refusal) { at("answer").replaceChildren(make("p", refusal.message, { className: "warning" })); }
    });
    prepared();
    opened(linked);
  };
  form.hidden = false;
  started();
  window.addEventListener("hashchange", () => {
    const linked = followed();
    if (linked) {
      Object.entries({ which: state.table, kind: state.ask, confidence: String(state.c) }).forEach(([id, value]) => { at(id).value = value; });
      prepared();
    }
    opened(linked);
  });
})();
