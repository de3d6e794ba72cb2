"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const form = $("controls");
  const results = $("results");
  const start = JSON.parse(form.dataset.start);
  const gone = "The planner does not answer: it was stopped. Start it again with holdfast page; what you moved stays on this page, and its spec can be copied.";
  const tables = all(".of-table");
  const past = [];
  const ahead = [];
  let current = 0;
  let busy = false;
  let dirty = false;
  let waiting = 0;
  let stop = new AbortController();
  let kept = null;
  let before = null;
  let mover = null;
  let moved = 0;
  let settled = null;
  let origin = null;

  const value = (id) => $(id).value.trim();
  const levelBox = (row) => row.querySelector("input[type=text]");
  const split = (t) => form.querySelector(`input[name=split-${t}]:checked`)?.value ?? "one";
  const fields = () => ({
    budget: {
      kind: form.querySelector("input[name=kind]:checked").value,
      epsilon: value("epsilon"), delta: value("delta"), rho: value("rho"),
    },
    tables: tables.map((table, t) => {
      return {
        method: $(`method-${t}`).value,
        shares: { one: null, best: "best", file: "file" }[split(t)]
          ?? (split(t) === "shares"
            ? Object.fromEntries(all(".slide.share", table).map((row) => [row.dataset.level, levelBox(row).value.trim()]).filter((pair) => pair[1] !== ""))
            : null),
        guess: value(`guess-${t}`),
        words: all("input[name=words]:checked", table).map((box) => box.value),
        exact: [...all("input[name=exact]:checked", table).map((box) => box.value), ...(table.exactBeside ?? [])],
        others: $(`others-${t}`).value.split("\n").map((line) => line.trim()).filter(Boolean),
      };
    }),
  });

  const slider = (box) => form.querySelector(`input[data-slides="${box.id}"]`);
  const linear = (range) => range.closest(".share") !== null;
  const tidy = (x) => String(Number(x.toPrecision(x < 0.1 ? 2 : 3)));
  const follow = (box) => {
    const range = slider(box);
    if (!range) return;
    const x = Number(box.value);
    if (box.value.trim() !== "" && Number.isFinite(x) && x >= 0) range.value = linear(range) ? x : Math.log10(Math.max(x, 1e-9));
    range.setAttribute("aria-valuetext", box.value || "not set");
  };

  const show = (sent) => {
    for (const radio of all("input[name=kind]")) radio.checked = radio.value === sent.budget.kind;
    for (const name of ["epsilon", "delta", "rho"]) if (sent.budget[name]) $(name).value = sent.budget[name];
    sent.tables.forEach((table, t) => {
      const room = tables[t];
      $(`method-${t}`).value = table.method;
      $(`guess-${t}`).value = table.guess;
      $(`others-${t}`).value = table.others.join("\n");
      for (const box of all("input[name=words]", room)) box.checked = table.words.includes(box.value);
      const boxes = all("input[name=exact]", room);
      for (const box of boxes) box.checked = table.exact.includes(box.value);
      room.exactBeside = table.exact.filter((name) => !boxes.some((box) => box.value === name));
      const chosen = table.shares === null ? "one" : typeof table.shares === "string" ? table.shares : "shares";
      for (const radio of all(`input[name=split-${t}]`, room)) radio.checked = radio.value === chosen;
      const rows = all(".slide.share", room);
      for (const row of rows) {
        if (chosen === "shares") levelBox(row).value = table.shares[row.dataset.level] ?? "0";
        else if (levelBox(row).value === "") levelBox(row).value = tidy(1 / rows.length);
      }
    });
    arrange();
  };

  const needed = { epsilon: ["epsilon"], "epsilon-delta": ["epsilon", "delta"], rho: ["rho"] };
  const arrange = () => {
    const kind = form.querySelector("input[name=kind]:checked").value;
    for (const row of all("[data-of]")) row.hidden = !needed[kind].includes(row.dataset.of);
    for (const [name, otherwise] of [["epsilon", "1"], ["delta", "1e-6"], ["rho", "0.5"]]) if (!value(name)) $(name).value = otherwise;
    tables.forEach((table, t) => {
      for (const row of all(".share", table)) row.hidden = split(t) !== "shares";
      for (const row of all(".split-best", table)) row.hidden = split(t) !== "best";
    });
    for (const box of all("input[type=text]", form)) follow(box);
    $("undo").disabled = past.length === 0;
    $("redo").disabled = ahead.length === 0;
  };

  const ask = async (verb, body, signal) => {
    let answer;
    try {
      answer = await fetch(verb, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error(gone);
    }
    let found;
    try { found = await answer.json(); } catch { throw new Error(answer.status === 403 ? "Another planner runs at this address now: open the address that it printed." : gone); }
    if (!answer.ok) throw new Error(found.refused ?? gone);
    return found;
  };
  const fill = (parts) => { for (const [id, html] of Object.entries(parts)) { $(id).innerHTML = html; $(id).classList.remove("stale"); } };
  const refuse = (words) => {
    $("refused").hidden = words === "";
    $("refused").textContent = words;
    if (words) $("changed").textContent = "";
    $("answer").classList.toggle("stale", words !== "");
  };
  const say = (words, working) => { $("status").textContent = words; results.setAttribute("aria-busy", String(working)); };
  const amount = ({ kind, epsilon, delta, rho }) => (kind === "rho" ? `ρ ${rho}` : kind === "epsilon" ? `ε ${epsilon}` : `ε ${epsilon}, δ ${delta}`);
  const turned = (from, to) => {
    const [sign, rest] = from.split(/ (.*)/), [other, more] = to.split(/ (.*)/);
    return sign === other ? `${sign} ${rest} → ${more}` : `${from} → ${to}`;
  };
  /* What was moved, in words: the budget, and of each table what is chosen, written or ticked. */
  const moves = (from, to) => {
    const found = amount(from.budget) === amount(to.budget) ? [] : [turned(amount(from.budget), amount(to.budget))];
    from.tables.forEach((old, t) => {
      const now = to.tables[t];
      for (const name of ["method", "guess"]) if (old[name] !== now[name]) found.push(`${name} ${old[name] || "none"} → ${now[name] || "none"}`);
      for (const [name, sign] of [["words", ""], ["exact", "exact "], ["others", ""]]) {
        for (const each of now[name]) if (!old[name].includes(each)) found.push(`with ${sign}${each}`);
        for (const each of old[name]) if (!now[name].includes(each)) found.push(`without ${sign}${each}`);
      }
      if (JSON.stringify(old.shares) !== JSON.stringify(now.shares)) found.push("another split");
    });
    return found;
  };
  /* Against the figures before the last change, or, while something is dragged, those before that. */
  const told = (here) => {
    const done = JSON.stringify(here.sent) === before, from = done ? origin : settled;
    if (done) settled = here;
    const found = from ? moves(from.sent, here.sent) : [];
    const errors = here.levels.flatMap(([name, error], i) => (from?.levels[i]?.[0] === name && from.levels[i][1] !== error ? [`${name} ${from.levels[i][1]} → ${error}`] : []));
    $("changed").textContent = found.length ? `${found.join(", ")}: ${errors.join(", ") || "the errors stay"}` : "";
  };
  const errors = (sent = fields()) => {
    const levels = all(".errors tr[data-level]").map((row) => [row.dataset.level, row.querySelector("strong").textContent.replace("≈ ", "")]);
    told({ sent, levels });
    $("strip").replaceChildren(...[amount(sent.budget), ...levels.map((each) => each.join(" "))].map((words) => Object.assign(document.createElement("span"), { textContent: words })));
    for (const row of all(".errors tr[data-level]")) {
      const t = all("#errors table").indexOf(row.closest("table"));
      const box = all(`.wanted[data-table="${t}"] .slide`).find((each) => each.dataset.level === row.dataset.level);
      if (!box) continue;
      const part = tables[t] && split(t) !== "shares" && all(".slide.share", tables[t]).find((each) => each.dataset.level === row.dataset.level);
      if (part && row.dataset.share) { levelBox(part).value = row.dataset.share; follow(levelBox(part)); }
      const input = levelBox(box);
      input.placeholder = Number(row.dataset.error) > 0 ? tidy(Number(row.dataset.error)) : "exact";
      if (input.value === "") { const range = slider(input); range.value = Math.log10(Math.max(Number(row.dataset.error), 1e-9)); range.setAttribute("aria-valuetext", `now ${input.placeholder}`); }
    }
  };

  const now = async () => {
    const run = ++current;
    const sent = fields();
    try {
      const found = await ask("plan", { fields: sent });
      if (run !== current) return;
      // While something is dragged, its figures follow; what was moved meanwhile is asked next.
      fill(found.parts);
      $("spec").textContent = found.text;
      refuse("");
      errors(sent);
      if (!dirty) say(found.measured ? "Measured." : "First figures; measuring them more closely …", true);
    } catch (error) {
      if (run !== current || dirty) return;
      refuse(error.message);
      say("", false);
    }
  };
  const later = async (run) => {
    const signal = stop.signal;
    const sent = fields();
    const still = () => run === current && !dirty && !signal.aborted;
    const part = async (verb, body) => {
      if (!still()) return;
      try {
        const found = await ask(verb, body, signal);
        if (!still()) return;
        fill(found.parts);
        if (verb === "plan") errors();
      } catch (error) {
        if (error.name === "AbortError" || !still()) return;
        if (verb === "plan") refuse(error.message);
        else $(verb).textContent = error.message;
      }
    };
    if (kept) await part("compare", { kept, fields: sent });
    await part("plan", { fields: sent, stage: "measured" });
    if (kept) await part("compare", { kept, fields: sent });
    await part("prices", { fields: sent });
    await part("methods", { fields: sent });
    if (still() && $("refused").hidden) say("Measured, as holdfast plan would say it.", false);
  };
  const plan = async () => {
    dirty = true;
    stop.abort();
    clearTimeout(waiting);
    if (busy) return;
    busy = true;
    say("Planning …", true);
    while (dirty) { dirty = false; await now(); }
    busy = false;
    if (!$("refused").hidden) return;
    stop = new AbortController();
    const run = current;
    for (const id of ["prices", "methods"]) $(id).classList.add("stale");
    waiting = setTimeout(() => later(run), 250);
  };
  const changed = (by = null) => {
    const after = JSON.stringify(fields());
    // Steps of one slider that follow each other are one change.
    const same = by !== null && by === mover && performance.now() - moved < 2000;
    if (before !== null && before !== after && !same) { past.push(before); origin = settled; if (past.length > 200) past.shift(); }
    if (before !== after) ahead.length = 0;
    mover = by;
    moved = performance.now();
    before = after;
    arrange();
    plan();
  };
  const take = (sent) => { show(sent); changed(); };
  const travel = (from, to) => {
    if (!from.length) return;
    to.push(before);
    origin = settled;
    before = from.pop();
    show(JSON.parse(before));
    plan();
  };

  const solve = async (body) => {
    say("Solving …", true);
    try {
      const found = await ask("solve", { fields: fields(), ...body });
      const sent = fields();
      if (found.amount !== null) sent.budget[sent.budget.kind === "rho" ? "rho" : "epsilon"] = found.amount;
      found.shares.forEach((shares, t) => { if (shares) sent.tables[t].shares = shares; });
      take(sent);
    } catch (error) { refuse(error.message); say("", false); }
  };
  const wanted = () => all(".wanted").map((room) => Object.fromEntries(
    all(".slide", room).map((row) => [row.dataset.level, levelBox(row).value.trim()]).filter((pair) => pair[1] !== "")));
  const wish = () => {
    if (wanted().some((each) => Object.keys(each).length)) solve({ wanted: wanted(), split: $("follow").checked });
    else changed();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const range = event.target.closest("input[type=range]");
    if (range) {
      const box = $(range.dataset.slides);
      box.value = linear(range) ? tidy(Number(range.value)) : tidy(10 ** Number(range.value));
      range.setAttribute("aria-valuetext", box.value);
      if (!range.closest(".wanted")) plan();
    }
  });
  form.addEventListener("change", (event) => {
    const target = event.target;
    if (target.id === "follow" || target.closest(".wanted")) { if (target.id !== "follow") follow(levelBox(target.closest(".slide"))); wish(); return; }
    changed(target.type === "range" ? target : null);
  });
  for (const button of all(".best")) button.addEventListener("click", () => solve({ best: true }));
  $("undo").addEventListener("click", () => travel(past, ahead));
  $("redo").addEventListener("click", () => travel(ahead, past));
  $("reset").addEventListener("click", () => { for (const row of all(".wanted .slide")) levelBox(row).value = ""; take(start); });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.target.closest("input[type=text], textarea")) return;
    const key = event.key.toLowerCase();
    if (key === "z" || key === "y") { event.preventDefault(); if (key === "y" || event.shiftKey) travel(ahead, past); else travel(past, ahead); }
  });
  $("keep").addEventListener("click", () => {
    kept = fields();
    $("swap").hidden = $("forget").hidden = false;
    plan();
  });
  $("swap").addEventListener("click", () => { const other = kept; kept = fields(); take(other); });
  $("forget").addEventListener("click", () => {
    kept = null;
    $("swap").hidden = $("forget").hidden = true;
    $("compare").textContent = "Keep a plan, move something, and see both.";
  });
  $("copy").addEventListener("click", async () => {
    const text = $("spec").textContent;
    try { await navigator.clipboard.writeText(text); } catch {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area); area.select(); document.execCommand("copy"); area.remove();
    }
    $("told").textContent = "Copied.";
  });
  const write = async (over) => {
    $("asked").hidden = true;
    try {
      const found = await ask("write", { fields: fields(), name: value("name"), over });
      if (found.exists) { $("asked-words").textContent = `${found.exists} exists already.`; $("asked").hidden = false; $("not-over").focus(); $("told").textContent = ""; }
      else $("told").textContent = `Wrote ${found.written}; next: holdfast plan ${found.written}`;
    } catch (error) { $("told").textContent = error.message; }
  };
  $("write").addEventListener("click", () => write(false));
  $("over").addEventListener("click", () => write(true));
  $("not-over").addEventListener("click", () => { $("asked").hidden = true; $("told").textContent = "Nothing was written."; });

  show(start);
  before = JSON.stringify(fields());
  plan();
})();
