/* Weighted sums of the noise of a table: what its page says of the law, made into what `reaches` asks for. */
const noiseOf = (() => {
  const FAINT = 1e-14, MOST_NEAR = 160;
  const dot = (a, b) => {
    let found = 0;
    for (let i = 0; i < a.length; i += 1) found += a[i] * b[i];
    return found;
  };

  /* What is not measured told by what is. */
  const measured = (law, weights) => {
    if (!law.told) return weights;
    const { start, at, sign } = law.told, found = weights.slice();
    for (let r = 0; r + 1 < start.length; r += 1) {
      const share = found[at[start[r]]] / sign[start[r]];
      if (share) for (let j = start[r]; j < start[r + 1]; j += 1) found[at[j]] -= share * sign[j];
    }
    return found;
  };

  /* Weights of the noise itself: what least squares onto the rows makes of weights on the figures. Conjugate gradients. */
  const moved = (law, asked) => {
    const weights = measured(law, asked);
    if (!law.rows) return weights;
    const { start, at, sign } = law.rows, rows = start.length - 1, spread = law.spread;
    const across = (x) => {
      const found = new Float64Array(rows);
      for (let r = 0; r < rows; r += 1) for (let j = start[r]; j < start[r + 1]; j += 1) found[r] += sign[j] * x[at[j]] * spread[at[j]];
      return found;
    };
    const back = (y) => {
      const found = new Float64Array(weights.length);
      for (let r = 0; r < rows; r += 1) for (let j = start[r]; j < start[r + 1]; j += 1) found[at[j]] += sign[j] * y[r];
      return found;
    };
    const diagonal = law.diagonal ??= Float64Array.from({ length: rows }, (_, r) => {
      let all = 0;
      for (let j = start[r]; j < start[r + 1]; j += 1) all += sign[j] ** 2 * spread[at[j]];
      return all;
    });
    const found = new Float64Array(rows);
    let rest = across(weights), size = 0;
    let scaled = rest.map((each, r) => each / diagonal[r]), way = scaled.slice(), length = dot(rest, scaled);
    const enough = 1e-30 * length;
    for (let n = 0; n < 4000 && length > enough; n += 1) {
      const image = across(back(way));
      size = length / dot(way, image);
      for (let r = 0; r < rows; r += 1) { found[r] += size * way[r]; rest[r] -= size * image[r]; }
      scaled = rest.map((each, r) => each / diagonal[r]);
      const next = dot(rest, scaled);
      way = way.map((each, r) => scaled[r] + next / length * each);
      length = next;
    }
    const left = back(found);
    for (let i = 0; i < left.length; i += 1) left[i] = weights[i] - left[i];
    return left;
  };

  /* Independent noise: alike weights of one law together, to 12 digits. */
  const largest = (u) => {
    let found = 0;
    for (let i = 0; i < u.length; i += 1) found = Math.max(found, Math.abs(u[i]));
    return found;
  };
  const different = (u) => {
    const found = new Set();
    for (const each of u) if (each) found.add(each);
    return [...found];
  };
  const alike = (law, u) => {
    const most = largest(u), groups = new Map();
    for (let i = 0; i < u.length; i += 1) {
      const share = Math.round(Math.abs(u[i]) / most * 1e12);
      if (!share) continue;
      const key = share * law.parameter.length + law.which[i];
      const group = groups.get(key);
      if (group) group[2] += 1; else groups.set(key, [law.which[i], share / 1e12 * most * law.unit, 1]);
    }
    return independent(law, [...groups.values()]);
  };
  /* Two sums at once: noise that counts alike in both together, and any sum x·first + y·second of them. */
  const both = (law, first, second) => {
    const [a, b] = [first, second].map((u) => { const most = largest(u) || 1; return u.map((each) => Math.round(each / most * 1e12) / 1e12 * most); });
    const groups = new Map();
    for (let i = 0; i < a.length; i += 1) {
      if (!a[i] && !b[i]) continue;
      const key = `${law.which[i]}/${a[i]}/${b[i]}`, group = groups.get(key);
      if (group) group[3] += 1; else groups.set(key, [law.which[i], a[i] * law.unit, b[i] * law.unit, 1]);
    }
    const all = [...groups.values()];
    return (x, y) => {
      const parts = all.map(([k, one, other, times]) => [k, Math.abs(x * one + y * other), times]), most = parts.reduce((found, each) => Math.max(found, each[1]), 0);
      return independent(law, parts.filter((each) => each[1] > 1e-12 * most));
    };
  };
  const independent = (law, parts) => {
    const error = Math.sqrt(parts.reduce((found, [k, size, times]) => found + times * size * size * law.variance[k], 0));
    const phi = (x) => {
      let found = 1;
      for (const [k, size, times] of parts) {
        const one = law.waves[k](x * size);
        found *= times === 1 ? one : one ** times;
        if (found < 1e-300) break;
      }
      return found;
    };
    const sum = {
      error, phi, fallen: phi, lattice: law.integer, key: parts.map(([k, size, times]) => `${k}*${size.toPrecision(12)}*${times}`).sort().join(), fars: law.fars ??= new Map(), leaves: parts.map((each) => each[1]),
      tilted: (t) => parts.reduce((found, [k, size, times]) => found + times * reaches.tilted(law, k, t * size), 0),
    };
    sum.around = reaches.around(sum);
    return sum;
  };

  /* --- whole noise given that a tree adds up: messages from the leaves on, each on a circle of its own */

  const circles = new Map();
  const turnsOf = (size) => {
    if (!circles.has(size)) circles.set(size, [Math.cos, Math.sin].map((one) => Float64Array.from({ length: size / 2 }, (_, k) => one(2 * Math.PI * k / size))));
    return circles.get(size);
  };
  const fft = (re, im) => {
    const size = re.length, [cosines, sines] = turnsOf(size);
    for (let i = 1, j = 0; i < size; i += 1) {
      let bit = size >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) { [re[i], re[j]] = [re[j], re[i]]; [im[i], im[j]] = [im[j], im[i]]; }
    }
    for (let half = 1; half < size; half *= 2) {
      const step = size / half / 2;
      for (let start = 0; start < size; start += 2 * half) {
        for (let i = start, k = 0; i < start + half; i += 1, k += step) {
          const j = i + half, a = re[j] * cosines[k] - im[j] * sines[k], b = re[j] * sines[k] + im[j] * cosines[k];
          re[j] = re[i] - a; im[j] = im[i] - b; re[i] += a; im[i] += b;
        }
      }
    }
  };

  const tree = (law) => {
    const count = law.which.length + law.tops, children = Array.from({ length: count }, () => []);
    const exact = new Uint8Array(count), parent = new Int32Array(count).fill(-1);
    const { start, at, sign } = law.rows;
    let top = law.which.length;
    for (let r = 0; r + 1 < start.length; r += 1) {
      const some = Array.from(at.slice(start[r], start[r + 1]));
      if (some.length === 1) { exact[some[0]] = 1; continue; }
      const signs = some.map((_, j) => sign[start[r] + j]), owner = signs.some((each) => each < 0) ? signs.indexOf(1) : -1;
      const above = owner < 0 ? top++ : some[owner];
      if (owner < 0) exact[above] = 1;
      some.forEach((child, j) => { if (j !== owner) { children[above].push(child); parent[child] = above; } });
    }
    const order = [];
    for (let v = 0; v < count; v += 1) if (parent[v] < 0) order.push(v);
    for (let i = 0; i < order.length; i += 1) order.push(...children[order[i]]);
    const measured = (v) => v < law.which.length && law.variance[law.which[v]] !== null;
    const spread = new Float64Array(count), widest = new Float64Array(count), own = new Float64Array(count), length = new Int32Array(count);
    for (const v of order.slice().reverse()) {
      const variance = measured(v) ? law.variance[law.which[v]] : Infinity;
      const tail = measured(v) ? (law.gaussian ? 9 * Math.sqrt(variance) + 2 : 26 * Math.sqrt(variance) + 4) : Infinity;
      let [below, far] = [0, 0];
      for (const c of children[v]) { below += spread[c]; far = Math.max(far, widest[c]); }
      const sums = children[v].length ? 9 * Math.sqrt(below) + far + 2 : Infinity;
      own[v] = exact[v] ? 0 : Math.ceil(Math.min(tail, sums));
      if (children[v].length) length[v] = 2 ** Math.ceil(Math.log2(Math.max(16, own[v] + sums + 1, 2 * own[v] + 1)));
      spread[v] = exact[v] ? 0 : Math.min(variance, children[v].length ? below : Infinity);
      widest[v] = exact[v] ? 0 : own[v];
    }
    const logs = law.parameter.map((each) => (each === null ? null : law.gaussian ? (t) => -t * t / (2 * each) : (t) => -Math.abs(t) / each));
    const weight = (v, t) => (exact[v] ? Number(t === 0) : measured(v) ? Math.exp(logs[law.which[v]](t)) : 1);
    /* Nodes of one number have the same law, and so have all below them. */
    const inner = order.filter((v) => children[v].length).reverse(), numbers = new Map(), alike = new Int32Array(count);
    const number = (v, below) => {
      const key = `${exact[v] ? "x" : measured(v) ? law.which[v] : "n"}/${below}`;
      if (!numbers.has(key)) numbers.set(key, numbers.size);
      alike[v] = numbers.get(key);
    };
    for (const v of order) if (!children[v].length) number(v, "");
    for (const v of inner) number(v, Int32Array.from(children[v], (c) => alike[c]).sort().join());
    const plain = new Map();
    /* What a child multiplies the sum with at angle k of its parent's circle; `slope`: of its total, `x`: the frequency. */
    const spectrum = (v, size, below, x, slope) => {
      if (!children[v].length) {
        const found = new Float64Array(size), one = exact[v] ? () => 1 : law.waves[law.which[v]];
        for (let k = 0; k <= size / 2; k += 1) found[k] = one(2 * Math.PI * k / size + x * slope);
        for (let k = size / 2 + 1; k < size; k += 1) found[k] = one(2 * Math.PI * (k - size) / size + x * slope);
        return found;
      }
      const re = new Float64Array(size), im = new Float64Array(size), n = below[0].length;
      for (let t = -own[v]; t <= own[v]; t += 1) {
        const from = (t + n) % n, to = ((t % size) + size) % size, w = weight(v, t), [cos, sin] = [Math.cos(x * slope * t), Math.sin(x * slope * t)];
        const a = below[0][from] * w, b = below[1][from] * w;
        re[to] += a * cos - b * sin;
        im[to] += a * sin + b * cos;
      }
      fft(re, im);
      return re;
    };
    const product = (size, parts) => {
      const found = new Float64Array(size).fill(1);
      for (const [values, times] of parts) for (let k = 0; k < size; k += 1) found[k] *= times === 1 ? values[k] : values[k] ** times;
      return found;
    };
    const sums = (v, parts) => {
      const re = product(length[v], parts), im = new Float64Array(length[v]);
      fft(re, im);
      return [re.map((each) => each / re.length), im.map((each) => -each / re.length)]; /* back along the circle */
    };
    const kinds = (v, slopes, bends) => {
      const found = new Map();
      for (const c of children[v]) {
        const key = `${bends?.[c] ? `n${bends[c]}` : alike[c]}/${slopes ? slopes[c] : 0}`;
        const known = found.get(key);
        if (known) known[1] += 1; else found.set(key, [c, 1]);
      }
      return found;
    };
    const flat = (v) => {
      if (!plain.has(alike[v])) plain.set(alike[v], sums(v, Array.from(kinds(v, null).values(), ([c, times]) => [flatSpectrum(c, length[v]), times])));
      return plain.get(alike[v]);
    };
    const spectra = new Map();
    const flatSpectrum = (v, size) => {
      const key = `${alike[v]}/${size}`;
      if (!spectra.has(key)) {
        const made = spectrum(v, size, children[v].length ? flat(v) : null, 0, 0);
        const top = made[0];
        if (children[v].length) for (let k = 0; k < size; k += 1) made[k] /= top;
        spectra.set(key, made);
      }
      return spectra.get(key);
    };
    for (const v of inner) flat(v); /* no deep recursion */

    const leavesOf = (weights) => {
      const found = new Float64Array(count);
      for (const v of order) if (!exact[v]) found[v] = (v < weights.length ? weights[v] : 0) + (parent[v] < 0 ? 0 : found[parent[v]]);
      for (const v of inner) found[v] = 0;
      return found;
    };

    /* E e^{ixs} of s = Σ weights·noise. What all below a node have in common goes to its own total. */
    const prepared = (weights) => {
      const slope = new Float64Array(count), common = new Float64Array(count), bends = new Int32Array(count);
      slope.set(weights);
      for (const v of inner) {
        common[v] = slope[children[v][0]];
        let bent = false;
        for (const c of children[v]) bent ||= bends[c] || slope[c] !== common[v];
        if (bent) {
          bends[v] = 1;
          common[v] = Float64Array.from(children[v], (c) => slope[c]).sort()[children[v].length >> 1];
        }
        slope[v] += common[v];
      }
      const rest = new Float64Array(count), firsts = new Map(), parts = new Map(), bent = [null];
      for (const v of order) if (parent[v] >= 0) rest[v] = slope[v] - common[parent[v]];
      for (const v of inner) { /* one of those with the same law and the same slopes below stands for all */
        if (!bends[v]) continue;
        const some = kinds(v, rest, bends), key = `${alike[v]}|${parent[v] < 0}|${Array.from(some, ([each, [, times]]) => `${each}*${times}`).sort().join()}`;
        if (!firsts.has(key)) { firsts.set(key, bent.length); bent.push(v); parts.set(v, [...some.values()]); }
        bends[v] = firsts.get(key);
      }
      const first = (v) => (bends[v] ? bent[bends[v]] : v), above = bent.map(() => []);
      for (const v of inner) if (bends[v] && parent[v] >= 0) above[bends[v]].push(first(parent[v]));
      const still = ([c]) => !bends[c] && !rest[c];
      /* Nodes of many children, up to the top: what these make is faint but at few angles, and no circle is needed. */
      const narrow = new Map(), wide = new Map(), nears = new Map();
      for (const v of parts.keys()) {
        const inner = parts.get(v).filter(([c]) => bends[c] && nears.get(first(c)) && !rest[c]).map(([c]) => [c, nears.get(first(c))]);
        nears.set(v, (exact[v] ? parent[v] < 0 : measured(v)) ? nearest(v, parts.get(v).filter(still), inner) : null);
      }
      for (const v of bent.slice(1).reverse()) {
        const all = parts.get(v), moving = all.filter((each) => !still(each)), near = nears.get(v);
        if (near && above[bends[v]].every((one) => narrow.has(one))) narrow.set(v, { near, moving, scale: 0 });
        else wide.set(v, [product(length[v], all.filter(still).map(([c, times]) => [flatSpectrum(c, length[v]), times])), moving]);
      }
      const tops = order.filter((v) => parent[v] < 0 && (bends[v] || slope[v]) && !(exact[v] && !bends[v]));
      const at = (x) => {
        const known = new Map(), turns = new Map(), below = (v) => known.get(first(v)) ?? flat(v);
        for (const v of parts.keys()) {
          if (narrow.has(v)) continue;
          const [base, moving] = wide.get(v);
          known.set(v, sums(v, [[base, 1]].concat(moving.map(([c, times]) => {
            const inner = children[c].length > 0, made = spectrum(c, length[v], inner ? below(c) : null, x, rest[c]);
            if (inner) { const top = norm(c); for (let k = 0; k < made.length; k += 1) made[k] /= top; }
            return [made, times];
          }))));
        }
        let found = 1;
        for (const v of parts.keys()) {
          if (!narrow.has(v)) continue;
          const here = narrow.get(v), reach = (here.near.length - 1) / 2;
          here.sum = here.near.slice();
          for (const [c, times] of here.moving) {
            const part = narrow.get(first(c)), key = part || bends[c] ? null : `${alike[c]}/${rest[c]}/${length[v]}/${reach}`;
            const made = part ? smoothed(part, c, length[v], reach, x * rest[c], turns)
              : kept(turns, key, () => turned(c, length[v], reach, bends[c] ? below(c) : null, x * rest[c]));
            for (let i = 0; i < made.length; i += 1) here.sum[i] *= times === 1 ? made[i] : made[i] ** times;
          }
        }
        for (const v of tops) {
          const part = narrow.get(first(v));
          if (part) { found *= smoothed(part, v, 1, 0, x * slope[v], turns)[0]; continue; }
          if (!children[v].length) { if (!exact[v]) found *= law.waves[law.which[v]](x * slope[v]); continue; }
          const here = below(v), there = flat(v), n = length[v];
          let [re, whole] = [0, 0];
          for (let t = -own[v]; t <= own[v]; t += 1) {
            const from = (t + n) % n, w = weight(v, t);
            re += w * (here[0][from] * Math.cos(x * slope[v] * t) - here[1][from] * Math.sin(x * slope[v] * t));
            whole += w * there[0][from];
          }
          found *= re / whole;
        }
        return found;
      };
      at(0); /* what all is divided by */
      return at;
    };
    /* What children that stay make of a node around angle 0, as long as it is not faint beside what the others may. */
    const nearest = (v, still, others) => {
      const side = [], size = length[v], tops = [];
      for (let k = 0; k <= size / 2; k += 1) {
        let value = 1, rest = 1;
        for (const [c, times] of still) if (!exact[c]) value *= (children[c].length ? flatSpectrum(c, size)[k] : law.waves[law.which[c]](2 * Math.PI * k / size)) ** times;
        for (let i = 0; i < others.length && Math.abs(value * rest) >= FAINT; i += 1) {
          const [c, near] = others[i], middle = (near.length - 1) / 2, one = law.waves[law.which[c]];
          const most = near.reduce((found, each, j) => found + each * one(2 * Math.PI * (k / size - (j - middle) / length[c])), 0);
          rest *= most / (tops[i] ??= most);
        }
        if (Math.abs(value * rest) < FAINT) return Float64Array.from([...side.slice(1).reverse(), ...side]);
        if (side.push(value) > MOST_NEAR) return null;
      }
      return null;
    };
    const kept = (known, key, make) => {
      const found = known.get(key) ?? make();
      if (key !== null) known.set(key, found);
      return found;
    };
    /* What a child makes of its parent's sum at few angles around 0 of that circle, turned by a shift. */
    const turned = (v, size, reach, below, shift) => {
      const found = new Float64Array(2 * reach + 1), turn = 2 * Math.PI / size;
      if (!children[v].length) {
        const one = exact[v] ? () => 1 : law.waves[law.which[v]];
        for (let i = -reach; i <= reach; i += 1) found[i + reach] = one(turn * i + shift);
        return found;
      }
      const [cosines, sines] = turnsOf(size), half = size / 2, [re, im] = below ?? flat(v), n = re.length, top = norm(v);
      for (let t = -own[v]; t <= own[v]; t += 1) {
        const w = weight(v, t) / top, from = (t + n) % n, cos = Math.cos(shift * t), sin = Math.sin(shift * t);
        const a = w * (re[from] * cos - im[from] * sin), b = w * (re[from] * sin + im[from] * cos);
        for (let i = 0; i <= reach; i += 1) {
          const k = (t * i) & (size - 1), sign = k < half ? 1 : -1, c = sign * cosines[k & (half - 1)], s = sign * sines[k & (half - 1)];
          found[reach + i] += a * c - b * s;
          if (i) found[reach - i] += a * c + b * s;
        }
      }
      return found;
    };
    /* The sum below v with its own weight, at angles of a circle of its parent and turned by a shift. */
    const smoothed = (here, v, size, reach, shift, turns) => {
      const faint = 1e-3 * FAINT * here.sum[here.sum.length >> 1], seen = (k) => Math.abs(here.sum[k]) > faint || Math.abs(here.sum[here.sum.length - 1 - k]) > faint;
      let edge = 0;
      while (edge < here.sum.length >> 1 && !seen(edge)) edge += 1;
      const sum = here.sum.subarray(edge, here.sum.length - edge), inner = (sum.length - 1) / 2, all = Math.max(size, length[v]), [a, b] = [all / size, all / length[v]];
      const far = reach * a + inner * b, turn = 2 * Math.PI / all, one = exact[v] ? () => 1 : law.waves[law.which[v]], found = new Float64Array(2 * reach + 1);
      const weights = kept(turns, `${exact[v] ? "x" : law.which[v]}/${shift}/${all}/${far}`, () => {
        const made = new Float64Array(2 * far + 1);
        for (let k = -far; k <= far; k += 1) made[k + far] = one(turn * k + shift);
        return made;
      });
      for (let i = -reach; i <= reach; i += 1) {
        let value = 0;
        for (let j = 0, k = i * a + inner * b + far; j < sum.length; j += 1, k -= b) value += sum[j] * weights[k];
        found[i + reach] = value;
      }
      here.scale ||= found[reach];
      for (let i = 0; i < found.length; i += 1) found[i] /= here.scale;
      return found;
    };
    const norms = new Map();
    const norm = (v) => {
      if (!norms.has(alike[v])) {
        let found = 0;
        for (let t = -own[v]; t <= own[v]; t += 1) found += weight(v, t) * flat(v)[0][(t + length[v]) % length[v]];
        norms.set(alike[v], found);
      }
      return norms.get(alike[v]);
    };

    /* The variance: (1 − φ)·2/x² at some small frequencies, and where it goes as they vanish. */
    const varianceOf = (phi, rough) => {
      const first = 0.045 / Math.sqrt(rough), table = [];
      for (let k = 0; k < 6; k += 1) {
        const x = first * (k + 1), row = [2 * (1 - phi(x)) / (x * x)];
        for (let j = 1; j <= k; j += 1) {
          const [near, far] = [(first * (k - j + 1)) ** 2, x * x];
          row[j] = (far * table[k - 1][j - 1] - near * row[j - 1]) / (far - near);
        }
        table.push(row);
      }
      return table[5][5];
    };
    return (weights) => {
      const all = leavesOf(weights), leaves = different(all), most = largest(leaves);
      if (!most) return { error: 0 };
      const known = new Map(), of = prepared(weights); /* the same angles are asked for at every confidence */
      const phi = (x) => known.get(x) ?? known.set(x, of(x)).get(x), signed = leaves.some((each) => each < 0) && leaves.some((each) => each > 0);
      let rough = 0;
      for (let v = 0; v < count; v += 1) if (all[v]) rough += all[v] ** 2 * (measured(v) ? law.variance[law.which[v]] : 1);
      let variance = varianceOf(phi, rough); /* rough is too large where much is known from above: once more */
      for (let n = 0; n < 3 && rough > 1.5 * variance && variance > 0; n += 1) { rough = variance; variance = varianceOf(phi, rough); }
      let sizes = null;
      const fallen = (x) => (signed ? (sizes ??= prepared(all.map(Math.abs)))(x) : phi(x));
      const error = Math.sqrt(Math.max(variance, 0));
      return { error, phi, fallen, lattice: true, leaves, around: () => 30 * error + 2 * most };
    };
  };

  /* Some figures of which all are sums: their covariance, and simulated errors where the law has no formula. */
  const studied = (law) => {
    const count = law.own.length, others = law.others.length;
    const sums = law.kind === "study" && Array.from({ length: count }, (_, i) => law.drawn.subarray(i * law.size, (i + 1) * law.size));
    return (weights) => {
      const own = Float64Array.from(law.own, (at, i) => law.others.reduce((found, other, j) => found + law.rest[i * others + j] * weights[other], weights[at]));
      const square = own.reduce((found, a, i) => found + a * own.reduce((sum, b, j) => sum + b * law.covariance[i * count + j], 0), 0);
      const error = Math.sqrt(Math.max(square, 0)) + law.rounded * weights.reduce((found, each) => found + Math.abs(each), 0);
      if (!sums) return { error, normal: true };
      const errors = new Float64Array(law.size);
      own.forEach((weight, i) => { if (weight) sums[i].forEach((each, k) => { errors[k] += weight * each; }); });
      return { error, errors };
    };
  };

  /* What the page says, made ready: sums by weights on the outputs. Null: nobody can tell without simulating. */
  return (law) => {
    if (!law) return () => null;
    if (law.own) return studied(law);
    law.waves = law.parameter.map((each, k) => (each === null ? null : reaches.wave(law, k)));
    if (law.rows) law.spread = Float64Array.from(law.which, (k) => law.spreads[k]);
    if (law.kind === "given") {
      let made = null;
      return (weights) => (made ??= tree(law))(weights);
    }
    const noise = (weights) => ({ ...alike(law, moved(law, weights)), normal: law.kind === "normal" });
    return Object.assign(noise, { both: (first, second) => both(law, moved(law, first), moved(law, second)) });
  };
})();
