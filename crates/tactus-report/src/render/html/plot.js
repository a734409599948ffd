// Figures that answer to pointer and keys, drawn by uPlot over the still ones; those stay for print.
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const three = (value) => String(Number(value.toPrecision(3)));
const large = (n) => n >= 999.5e6 ? three(n / 1e9) + "G" : n >= 999.5e3 ? three(n / 1e6) + "M" : n >= 9999.5 ? three(n / 1e3) + "k" : three(n);
const WRITE = {
  latency: (us) => us >= 999.5e3 ? three(us / 1e6) + " s" : us >= 999.5 ? three(us / 1e3) + " ms" : three(us) + " µs",
  part: (part) => part >= 0.9995 ? "all" : "1 in " + large(1 / part),
  count: large,
  bytes: (n) => n >= 2 ** 30 ? three(n / 2 ** 30) + " GiB" : n >= 2 ** 20 ? three(n / 2 ** 20) + " MiB" : n >= 1024 ? three(n / 1024) + " KiB" : n + " B",
  percentile: (n) => {
    const digits = Math.max(1, Math.ceil(Math.log10(n) - 1e-9) - 1);
    return (100 - 100 / n).toFixed(digits).replace(/\.?0+$/, "") + " %";
  },
  time: (s) => {
    for (const [unit, length] of [["years", 31536000], ["d", 86400], ["h", 3600], ["min", 60]])
      if (s >= length * 0.9995) return `${three(s / length)} ${unit === "years" && three(s / length) === "1" ? "year" : unit}`;
    return s >= 0.9995 ? three(s) + " s" : three(s * 1e3) + " ms";
  },
  plain: three,
};
// Times that people speak of, in seconds; those between where there is room.
const TIMES = [0.01, 0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000, 31536000, 315360000];
const BETWEEN = [2, 5, 20, 30, 120, 300, 1200, 1800, 7200, 14400, 43200, 172800, 1209600, 7776000, 15552000];
function ofTimes(u, axis, low, high) {
  const all = high / low < 100 ? [...TIMES, ...BETWEEN].sort((a, b) => a - b) : TIMES;
  return all.filter((time) => time >= low * 0.999 && time <= high * 1.001);
}
// Powers of two, as many as there is room for: sizes are those.
function ofBytes(u, axis, low, high) {
  const found = [], octaves = Math.log2(high / low);
  if (!(low > 0 && octaves < 64)) return found;
  const each = Math.max(1, Math.ceil(octaves * 60 / (u.over.clientWidth || 600)));
  for (let power = Math.ceil(Math.log2(low) / each) * each; 2 ** power <= high; power += each) found.push(2 ** power);
  return found.length > 1 ? found : ofDecades(u, axis, low, high);
}
const every = (u, splits) => splits;
// Kinds of which the ticks are no decades.
const OWN_TICKS = { time: ofTimes, bytes: ofBytes };
const element = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
};

// The end of a line in one of four shapes: colours alone do not tell lines apart for everybody.
function shape(context, x, y, n, size) {
  const points = [
    [[-1, -1], [1, -1], [1, 1], [-1, 1]], [[0, -1.3], [1.3, 1], [-1.3, 1]],
    [[0, -1.5], [1.5, 0], [0, 1.5], [-1.5, 0]], [[-1.3, -1], [1.3, -1], [0, 1.3]],
  ][n % 4];
  context.beginPath();
  for (const [dx, dy] of points) context.lineTo(x + dx * size, y + dy * size);
  context.fill();
}

// A bin with nothing in it lies below the axis: a gap would take a bin that stands alone with it.
const drawable = (of) => of.steps ? of.values.map((value) => value ?? 0.3) : of.values;

const isDecade = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;

// Where an axis has many decades, a grid of all its ticks would be a wall.
function decades(u, splits, n) {
  const scale = u.scales[n === 0 ? "x" : "y"];
  if (scale.distr !== 3 || scale.max / scale.min < 300) return splits;
  return splits.map((value) => value !== null && isDecade(value) ? value : null);
}

// What is written at an axis of decades: as much of each as there is room for. The library's own asks so of upright axes alone.
function written(u, splits, n) {
  const name = n === 0 ? "x" : "y", { min, max, distr } = u.scales[name], room = n === 0 ? 60 : 28;
  if (distr !== 3) return splits;
  const long = (times) => Math.abs(u.valToPos(times * min, name) - u.valToPos(min, name)), decade = long(10);
  if (max / min < 10) return splits.map((value, at) => at % Math.ceil(splits.length * room / long(max / min)) === 0 ? value : null);
  const leads = decade >= 7.2 * room ? "12357" : decade >= 3.5 * room ? "125" : "1", each = Math.ceil(room / decade);
  return splits.map((value) => {
    if (value === null) return null;
    const [lead, power] = value.toExponential(0).split("e");
    return leads.includes(lead) && Number(power) % each === 0 ? value : null;
  });
}

// One to nine of each decade: by itself the library begins at the lower end of the axis, whatever that is.
function ofDecades(u, axis, low, high) {
  const found = [];
  // Nothing is so many decades above zero that one would come to an end.
  if (!(low > 0 && high < Infinity)) return found;
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (let n = 1; n < 10; n++) {
      const value = Number((n * 10 ** power).toPrecision(6));
      if (value >= low && value <= high) found.push(value);
    }
  }
  if (found.length > 2) return found;
  // Within less than that steps are even.
  const ten = 10 ** Math.floor(Math.log10(high - low)), step = [0.1, 0.2, 0.5, 1, 2].map((part) => part * ten).find((part) => (high - low) / part < 9);
  return Array.from({ length: 10 }, (_, n) => Number(((Math.ceil(low / step) + n) * step).toPrecision(6))).filter((value) => value <= high);
}

function live(figure, plot, first) {
  const write = { x: WRITE[plot.x.kind], y: WRITE[plot.y.kind] };
  const box = element("div", "live");
  const keys = element("div", "legend");
  const place = element("div", "live-plot");
  place.tabIndex = 0;
  place.setAttribute("role", "application");
  place.setAttribute("aria-label", figure.querySelector(".canvas svg").getAttribute("aria-label") +
    ". Arrow keys read values, plus and minus zoom, 0 shows all.");
  // Said once, until there is a value to say.
  const how = "Drag to zoom, double-click to see all again; a name switches its line off.";
  const at = element("p", "at", first ? how : "");
  const spoken = element("p", "spoken");
  spoken.setAttribute("aria-live", "polite");
  const buttons = plot.series.map((line, n) => {
    const button = element("button", "line");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    const swatch = element("span", `swatch s${line.colour % 4 + 1}${line.dash ? " dash" : ""}`);
    const value = element("span", "value");
    button.append(swatch, element("span", "name", line.name), value);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      u.setSeries(n + 1, { show: on });
    });
    keys.append(button);
    return button;
  });
  box.append(keys, place, at, spoken);
  figure.querySelector(".still").before(box);
  figure.classList.add("has-live");

  const size = () => ({ width: Math.max(260, place.clientWidth), height: innerWidth < 640 ? 260 : 320 });
  const axis = (which, side) => ({
    scale: which, side, label: plot[which].label + (plot[which].log ? ", log." : ""), labelSize: side === 3 ? 22 : 26, labelGap: 2,
    size: side === 3 ? 76 : 34, font: FONT, labelFont: FONT, stroke: () => ink("--muted"), space: side === 3 ? 28 : plot.x.kind === "percentile" ? 70 : 60,
    grid: { stroke: () => ink("--grid"), width: 1, filter: OWN_TICKS[plot[which].kind] ? every : decades }, ticks: { stroke: () => ink("--rule"), width: 1, size: 5 },
    splits: OWN_TICKS[plot[which].kind] ?? (plot[which].log ? ofDecades : undefined),
    filter: OWN_TICKS[plot[which].kind] ? every : plot[which].log && plot[which].kind !== "percentile" ? written : undefined,
    values: (_, splits) => splits.map((value) => value === null || plot[which].kind === "part" && !isDecade(value) ? "" : write[which](value)),
  });
  const scale = (which, extra) => ({ time: false, distr: plot[which].log ? 3 : 1, ...extra });
  const line = (of, n) => ({
    label: of.name, scale: "y", stroke: () => ink(`--s${of.colour % 4 + 1}`), width: 2, dash: of.dash ? [6, 4] : undefined,
    fill: of.steps && !of.dash ? () => ink(`--s${of.colour % 4 + 1}`) + "1f" : undefined,
    paths: of.steps ? uPlot.paths.stepped({ align: 1 }) : of.dots ? () => null : undefined, spanGaps: of.points,
    points: of.dots ? { show: true, space: 0, size: 5, fill: () => ink(`--s${of.colour % 4 + 1}`) } : of.points ? { show: true, size: 5, fill: () => ink(`--s${of.colour % 4 + 1}`) } : { show: of.steps ? false : undefined, size: 4 },
  });
  const show = (u, speak) => {
    const n = u.cursor.idx;
    if (n === null || n === undefined) return;
    const where = `${plot.x.label}: ${write.x(plot.at[n])}`;
    at.textContent = where;
    const said = [where];
    plot.series.forEach((of, k) => {
      const value = of.values[n];
      const text = value === null || value === undefined ? "-" : write.y(value);
      buttons[k].querySelector(".value").textContent = text;
      if (u.series[k + 1].show) said.push(`${of.name}: ${text}`);
    });
    if (speak) spoken.textContent = said.join("; ");
  };
  const marks = (u) => {
    const { ctx, bbox } = u, ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${12 * ratio}px ${FACE}`;
    ctx.lineWidth = 2 * ratio;
    for (const mark of plot.marks) {
      const px = u.valToPos(mark.at, mark.upright ? "x" : "y", true);
      ctx.strokeStyle = ctx.fillStyle = ink("--mark");
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      if (mark.upright) { ctx.moveTo(px, bbox.top); ctx.lineTo(px, bbox.top + bbox.height); }
      else { ctx.moveTo(bbox.left, px); ctx.lineTo(bbox.left + bbox.width, px); }
      ctx.stroke();
      const wide = ctx.measureText(mark.text).width, room = 6 * ratio;
      const say = (x, y) => {
        const from = ctx.textAlign === "right" ? x - wide : x;
        ctx.fillStyle = ink("--page");
        ctx.fillRect(from - 2 * ratio, y - 11 * ratio, wide + 4 * ratio, 15 * ratio);
        ctx.fillStyle = ink("--mark");
        ctx.fillText(mark.text, x, y);
      };
      const bottom = bbox.top + bbox.height - 10 * ratio;
      if (mark.upright && plot.y.kind === "part" && px - 2 * room > bbox.left) {
        // Such lines fall to the right: at the bottom there is none to the left of it.
        ctx.save();
        ctx.translate(px - room, bottom);
        const beside = px - 2 * room - wide > bbox.left;
        if (!beside) ctx.rotate(-Math.PI / 2);
        ctx.textAlign = beside ? "right" : "left";
        say(0, 0);
        ctx.restore();
      } else if (mark.upright) {
        const left = px + room + wide > bbox.left + bbox.width;
        ctx.textAlign = left ? "right" : "left";
        say(px + (left ? -room : room), bottom);
      } else {
        ctx.textAlign = "right";
        say(bbox.left + bbox.width - room, px - room > bbox.top + 12 * ratio ? px - room : px + 14 * ratio);
      }
    }
    plot.series.forEach((of, n) => {
      if (of.steps || of.points || of.dots || !u.series[n + 1].show) return;
      const last = of.values.findLastIndex((value) => value !== null);
      if (last < 0 || plot.y.kind !== "part") return;
      ctx.fillStyle = ink(`--s${of.colour % 4 + 1}`);
      shape(ctx, u.valToPos(plot.at[last], "x", true), u.valToPos(of.values[last], "y", true), of.colour, 4 * ratio);
    });
    ctx.restore();
  };
  const zoom = (low, high) => u.setScale("x", { min: low, max: high });
  const all = () => zoom(plot.x.low, plot.x.high);
  const u = new uPlot({
    ...size(), legend: { show: false }, padding: [10, 14, 0, 0],
    scales: { x: scale("x", { range: (_, low, high) => [low, high] }), y: scale("y", { range: [plot.y.low, plot.y.high] }) },
    axes: [axis("x", 2), axis("y", 3)],
    series: [{}, ...plot.series.map(line)],
    bands: plot.band ? [{ series: plot.band.map((n) => n + 1), fill: () => ink(`--s${plot.series[plot.band[0]].colour % 4 + 1}`) + "2e" }] : [],
    cursor: { y: false, drag: { x: true, y: false }, points: { size: 7 }, bind: { dblclick: () => () => all() } },
    hooks: {
      setCursor: [(u) => show(u, false)],
      setScale: [(u, key) => {
        if (key === "x") box.dataset.range = `${u.scales.x.min} ${u.scales.x.max}`;
      }],
      draw: [marks],
    },
  }, [plot.at, ...plot.series.map(drawable)], place);
  all();
  place.addEventListener("keydown", (event) => {
    const last = plot.at.length - 1, n = u.cursor.idx;
    const to = { ArrowLeft: (n ?? last + 1) - (event.shiftKey ? 10 : 1), ArrowRight: (n ?? -1) + (event.shiftKey ? 10 : 1), Home: 0, End: last }[event.key];
    if (to !== undefined) {
      const near = Math.min(last, Math.max(0, to));
      u.setCursor({ left: u.valToPos(plot.at[near], "x"), top: u.over.clientHeight / 2 });
      show(u, true);
    } else if ("+=-".includes(event.key)) {
      const scale = u.scales.x, log = plot.x.log;
      const [low, high, middle] = [scale.min, scale.max, n === null || n === undefined ? null : plot.at[n]].map((v) => v === null ? null : log ? Math.log(v) : v);
      const factor = event.key === "-" ? 2 : 0.5, centre = middle ?? (low + high) / 2;
      const ends = [centre - (centre - low) * factor, centre + (high - centre) * factor].map((v) => log ? Math.exp(v) : v);
      zoom(Math.max(plot.x.low, ends[0]), Math.min(plot.x.high, ends[1]));
    } else if (event.key === "0" || event.key === "Escape") all();
    else return;
    event.preventDefault();
  });
  let known = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth !== known && place.clientWidth > 0) {
      known = place.clientWidth;
      u.setSize(size());
    }
  }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => u.redraw(false));
}

const FACE = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const FONT = "12px " + FACE;
let drawn = 0;
const mount = (figure) => {
  const data = figure.querySelector("script.plot-data");
  if (!data || figure.classList.contains("has-live")) return;
  live(figure, JSON.parse(data.textContent), drawn++ === 0);
};
// What is far below or folded is drawn when somebody comes near.
const near = new IntersectionObserver((seen) => {
  for (const one of seen) if (one.isIntersecting) { near.unobserve(one.target); mount(one.target); }
}, { rootMargin: "600px" });
for (const figure of document.querySelectorAll("figure.plot")) if (figure.querySelector("script.plot-data")) near.observe(figure);
