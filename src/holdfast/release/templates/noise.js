/* Weighted sums of the noise of a table: what its page says of the law, made into what `reaches` asks for. */
const noiseOf = (() => {
  const FAINT = 1e-15, DIRECT = 1e5, MOST_STUDIED = 22369, kept = (known, key, make) => known.get(key) ?? known.set(key, make()).get(key);
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

  /* Independent noise of two sums at once: what counts alike in both together, to 12 digits; any x·first + y·second. */
  const sorts = (u) => {
    const which = new Int32Array(u.length), known = new Map([[0, 0]]);
    let most = 0;
    for (const each of u) most = Math.max(most, Math.abs(each));
    for (let i = 0; i < u.length; i += 1) which[i] = i && u[i] === u[i - 1] ? which[i - 1] : u[i] && kept(known, Math.round(u[i] / most * 1e12), () => known.size);
    return { which, sizes: Array.from(known.keys(), (share) => share / 1e12 * most) };
  };
  const both = (law, a, b) => {
    const counts = [], laws = law.parameter.length, width = b.sizes.length * laws;
    for (let i = 0; i < a.which.length; i += 1) {
      const key = a.which[i] * width + b.which[i] * laws + law.which[i];
      counts[key] = (counts[key] ?? 0) + 1;
    }
    const all = Object.entries(counts).map(([key, times]) => [key % laws, law.unit * a.sizes[Math.floor(key / width)], law.unit * b.sizes[Math.floor(key % width / laws)], times]);
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
      error, phi, fallen: phi, blur: 60, lattice: law.integer, normal: law.kind === "normal", fars: law.fars ??= new Map(),
      key: parts.map(([k, size, times]) => `${k}*${size.toPrecision(12)}*${times}`).sort().join(), leaves: parts.map((each) => each[1]),
      tilted: (t) => parts.reduce((found, [k, size, times]) => found + times * reaches.tilted(law, k, t * size), 0),
    };
    sum.around = reaches.around(sum);
    return sum;
  };

  /* --- whole noise given that a tree adds up: messages from the leaves on, each at angles of a circle of its own */

  const turns = new Map();
  const fft = (re, im) => {
    const size = re.length, [cosines, sines] = kept(turns, size, () => [Math.cos, Math.sin].map((one) => Float64Array.from({ length: size / 2 }, (_, k) => one(2 * Math.PI * k / size))));
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
  const multiply = (found, values, times) => {
    for (let power = values; ; power = power.map((each) => each * each)) {
      if (times & 1) for (let k = 0; k < found.length; k += 1) found[k] *= power[k];
      if (!(times >>= 1)) return found;
    }
  };

  const tree = (law) => {
    const outputs = law.which.length, children = Array.from({ length: outputs }, () => []), exact = new Array(outputs).fill(false), parent = new Array(outputs).fill(-1);
    const { start, at, sign } = law.rows;
    for (let r = 0; r + 1 < start.length; r += 1) {
      const some = Array.from(at.slice(start[r], start[r + 1]));
      if (some.length === 1) { exact[some[0]] = true; continue; }
      const signs = some.map((_, j) => sign[start[r] + j]), owner = signs.some((each) => each < 0) ? signs.indexOf(1) : -1;
      const above = owner < 0 ? children.push([]) - 1 : some[owner]; /* a total that is no output */
      if (owner < 0) [exact[above], parent[above]] = [true, -1];
      some.forEach((child, j) => { if (j !== owner) { children[above].push(child); parent[child] = above; } });
    }
    const count = children.length;
    const order = [];
    for (let v = 0; v < count; v += 1) if (parent[v] < 0) order.push(v);
    for (let i = 0; i < order.length; i += 1) order.push(...children[order[i]]);
    const tops = order.filter((v) => parent[v] < 0), upwards = order.slice().reverse(), inner = upwards.filter((v) => children[v].length);
    const measured = (v) => v < law.which.length && law.variance[law.which[v]] !== null;

    /* How far a total is looked at, `own`, and how many places the circle has on which its children are added up. */
    const spread = new Float64Array(count), own = new Float64Array(count), length = new Int32Array(count);
    for (const v of upwards) {
      const variance = measured(v) ? law.variance[law.which[v]] : Infinity, deviation = Math.sqrt(variance);
      let [below, far] = [0, 0];
      for (const c of children[v]) { below += spread[c]; far = Math.max(far, own[c]); }
      const sums = children[v].length ? 9 * Math.sqrt(below) + far + 2 : Infinity;
      own[v] = exact[v] ? 0 : Math.ceil(Math.min(law.gaussian ? 9 * deviation + 2 : 26 * deviation + 4, sums));
      if (children[v].length) length[v] = 2 ** Math.ceil(Math.log2(Math.max(16, own[v] + sums + 1, 2 * own[v] + 1)));
      spread[v] = exact[v] ? 0 : Math.min(variance, children[v].length ? below : Infinity);
    }
    const weight = (v, t) => (!measured(v) ? 1 : Math.exp(law.gaussian ? -t * t / (2 * law.parameter[law.which[v]]) : -Math.abs(t) / law.parameter[law.which[v]]));

    /* Nodes of one kind have the same law, and so have all below them: children by kind and by what their totals count. */
    const kinds = new Map(), alike = new Int32Array(count), nothing = new Float64Array(count);
    const grouped = (v, kind, slope) => {
      const found = new Map();
      for (const c of children[v]) kept(found, `${kind[c]}/${slope[c]}`, () => [c, 0])[1] += 1;
      return found;
    };
    const kindOf = (words, some) => kept(kinds, `${words}:${Array.from(some, ([key, [, times]]) => `${key}*${times}`).sort()}`, () => kinds.size);
    for (const v of upwards) alike[v] = kindOf(exact[v] ? "exact" : measured(v) ? law.which[v] : "", grouped(v, alike, nothing));

    /* Σ w(t)·S(t)·e^{iθ(t + shift)} over totals t of c, at all angles θ of a circle; S from its angles, or 1 without them. */
    const around = (c, size, shift, angles) => {
      const n = length[c], [re, im, to, too] = [n, n, size, size].map((each) => new Float64Array(each));
      if (angles) angles.forEach((each, j) => { re[(j - (angles.length >> 1)) & (n - 1)] += each; }); else re[0] = 1;
      fft(re, im);
      for (let t = -own[c]; t <= own[c]; t += 1) {
        const [cos, sin] = [weight(c, t) * Math.cos(shift * t), weight(c, t) * Math.sin(shift * t)], from = -t & (n - 1);
        to[t & (size - 1)] += re[from] * cos - im[from] * sin;
        too[t & (size - 1)] += re[from] * sin + im[from] * cos;
      }
      fft(to, too);
      return to;
    };
    /* What c makes of its parent's sum at the angles −reach … reach of a circle; `angles`: what makes its own, or nothing asked. */
    const flats = new Map(), spectra = new Map(), tables = new Map();
    const message = (c, size, reach, shift, angles = flats.get(alike[c])?.angles) => {
      const found = new Float64Array(2 * reach + 1);
      if (!children[c].length) return exact[c] ? found.fill(1) : found.map((_, i) => law.waves[law.which[c]](2 * Math.PI * (i - reach) / size + shift));
      const { norm } = flats.get(alike[c]);
      if (shift || found.length * angles.length > DIRECT) {
        const all = around(c, size, shift, angles);
        return found.map((_, i) => all[(i - reach) & (size - 1)] / norm);
      }
      const all = Math.max(size, length[c]), table = kept(tables, `${alike[c]}/${all}`, () => around(c, all, 0)), [a, b] = [all / size, all / length[c]];
      for (let i = -reach; i <= reach; i += 1) {
        let sum = 0;
        for (let j = 0, place = i * a + (angles.length >> 1) * b; j < angles.length; j += 1, place -= b) sum += angles[j] * table[place & (all - 1)];
        found[i + reach] = sum / norm;
      }
      return found;
    };
    const still = (v, some) => {
      const found = new Float64Array(length[v] + 1).fill(1), size = length[v];
      for (const [c, times] of some) multiply(found, kept(spectra, `${alike[c]}/${size}`, () => message(c, size, size / 2, 0)), times);
      found[0] = 0; /* this angle is also the last one */
      return found;
    };
    for (const v of inner) {
      if (flats.has(alike[v])) continue;
      const made = { angles: still(v, grouped(v, alike, nothing).values()), norm: 1 };
      flats.set(alike[v], made);
      made.norm = message(v, 1, 0, 0)[0];
    }

    /* Weights of leaves that have the same sum; of inner nodes, what all below them agree on, or NaN. */
    const leavesOf = (weights) => {
      const found = new Float64Array(count);
      for (const v of order) if (!exact[v]) found[v] = (v < weights.length ? weights[v] : 0) + (parent[v] < 0 ? 0 : found[parent[v]]);
      for (const v of inner) found[v] = children[v].every((c) => found[c] === found[children[v][0]]) ? found[children[v][0]] : NaN;
      return found;
    };
    /* E e^{ixs} of s = Σ leaves·noise. What most below a node have in common goes to its own total. */
    const prepared = (leaves) => {
      const slope = leaves.slice(), kind = alike.slice(), rest = new Float64Array(count), bent = new Map();
      for (const v of inner) {
        if (Number.isNaN(leaves[v])) {
          const slopes = Float64Array.from(children[v].filter((c) => !exact[c]), (c) => slope[c]).sort(), common = slopes[slopes.length >> 1] ?? 0;
          for (const c of children[v]) rest[c] = exact[c] ? 0 : slope[c] - common;
          slope[v] = common;
          if (children[v].some((c) => rest[c] || kind[c] !== alike[c])) {
            const some = grouped(v, kind, rest);
            kind[v] = kindOf(`of ${alike[v]}`, some);
            kept(bent, kind[v], () => ({ v, some: [...some.values()] }));
          }
        }
        if (exact[v]) slope[v] = 0;
      }
      const key = tops.filter((v) => slope[v] || kind[v] !== alike[v]).map((v) => `${kind[v]}/${slope[v]}`).sort().join();
      let ready = false;
      const prepare = () => {
        /* No message is above 1, nor that of a child above what its children without a question make: beyond, all is faint. */
        for (const one of bent.values()) {
          const size = length[one.v], moves = ([c]) => rest[c] || kind[c] !== alike[c];
          one.moving = one.some.filter(moves);
          one.base = still(one.v, one.some.filter((each) => !moves(each)));
          let most = one.base.map(Math.abs);
          const narrowed = () => {
            let edge = 0;
            while (edge < most.length >> 1 && most[edge] < FAINT && most[most.length - 1 - edge] < FAINT) edge += 1;
            most = most.subarray(edge, most.length - edge);
            return most.length >> 1;
          };
          let reach = narrowed();
          for (const [c, times] of one.moving) {
            if (!bent.has(kind[c]) || rest[c]) continue;
            multiply(most, message(c, size, reach, 0, bent.get(kind[c]).most).map(Math.abs), times);
            reach = narrowed();
          }
          Object.assign(one, { reach, most, base: one.base.subarray(size / 2 - reach, size / 2 + reach + 1) });
        }
        ready = true;
      };
      const phi = (x) => {
        if (!ready) prepare();
        const sums = new Map(), made = new Map(), of = (c, size, reach) => kept(made, `${kind[c]}/${rest[c]}/${size}/${reach}`, () => message(c, size, reach, x * rest[c], sums.get(kind[c])));
        for (const [k, { v, base, moving, reach }] of bent) sums.set(k, moving.reduce((found, [c, times]) => multiply(found, of(c, length[v], reach), times), base.slice()));
        return tops.reduce((found, v) => (slope[v] || bent.has(kind[v]) ? found * message(v, 1, 0, x * slope[v], sums.get(kind[v]))[0] : found), 1);
      };
      return { key, phi };
    };
    /* At least log E e^{ts}: where all below a node agree it has at most what its own law has, and what its children have. */
    const tiltedOf = (groups) => (t) => {
      const known = new Map(), of = (v, slope) => kept(known, `${alike[v]}/${slope}`, () => {
        const below = children[v].length ? [...grouped(v, alike, nothing).values()].reduce((sum, [c, times]) => sum + times * of(c, slope), 0) : Infinity;
        return exact[v] ? 0 : Math.min(below, measured(v) ? reaches.tilted(law, law.which[v], slope) : Infinity);
      });
      return groups.reduce((sum, [v, times, weight]) => sum + times * of(v, t * weight), 0);
    };
    /* The variance: (1 − φ)·2/x² at some small frequencies, and where it goes as they vanish. */
    const varianceOf = (phi, rough) => {
      const at = (x) => 2 * (1 - phi(x)) / (x * x);
      for (let n = 0, before = 0; n < 8 && Math.abs(Math.log(rough / before)) > 0.3; n += 1) [before, rough] = [rough, at(0.3 / Math.sqrt(rough))];
      const first = 0.045 / Math.sqrt(rough), table = [1, 2, 3, 4, 5, 6].map((k) => at(first * k));
      for (let j = 1; j < 6; j += 1) for (let k = 5; k >= j; k -= 1) table[k] = ((k + 1) ** 2 * table[k - 1] - (k - j + 1) ** 2 * table[k]) / ((k + 1) ** 2 - (k - j + 1) ** 2);
      return table[5];
    };
    const made = new Map(); /* sums with the same law, and their angles at every confidence */
    return (weights) => {
      const leaves = leavesOf(weights), { key, phi: of } = prepared(leaves);
      if (!key) return { error: 0, fars: new Map() };
      return kept(made, key, () => {
        const known = new Map(), phi = (x) => kept(known, x, () => of(x)), agreeing = new Map();
        for (const v of order) if (leaves[v] && (parent[v] < 0 || Number.isNaN(leaves[parent[v]]))) kept(agreeing, `${alike[v]}/${leaves[v]}`, () => [v, 0, leaves[v]])[1] += 1;
        const groups = [...agreeing.values()], sizes = [...new Set(groups.map((each) => each[2]))];
        let unsigned = sizes.some((each) => each < 0) && sizes.some((each) => each > 0) ? null : phi;
        const rough = groups.reduce((sum, [v, times, weight]) => sum + times * weight ** 2 * spread[v], 0);
        const sum = {
          phi, lattice: true, studied: law.which.length <= MOST_STUDIED, blur: 12, leaves: sizes, fars: new Map(), key: "", tilted: tiltedOf(groups),
          fallen: (x) => (unsigned ??= prepared(leaves.map(Math.abs)).phi)(x),
        };
        sum.error = Math.sqrt(Math.max(varianceOf(phi, rough), 0));
        sum.around = reaches.around(sum);
        return sum;
      });
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
    const known = new WeakMap(), sorted = (weights) => kept(known, weights, () => sorts(moved(law, weights)));
    const noise = (weights) => both(law, sorted(weights), { which: new Int32Array(weights.length), sizes: [0] })(1, 0);
    return Object.assign(noise, { both: (first, second) => both(law, sorted(first), sorted(second)) });
  };
})();
