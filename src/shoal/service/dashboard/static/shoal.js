// Draws the charts and updates a campaign's page.

const POLL_INTERVAL = 1000; // milliseconds
const MAX_INTERVAL = 15000;
const ANNOUNCE_INTERVAL = 30000; // for screen readers
const LEGEND_WIDTH = 200; // pixels of a label
const MAX_MARKED = 12; // points that are marked one by one
const OVER_ROUNDS = ["reward", "shares", "sizes", "groups"]; // charts with notes and values to point at

const pageData = document.getElementById("data");
if (pageData) {
  updatePage(JSON.parse(pageData.textContent));
  sessionStorage.removeItem("draft"); // of a new campaign: it was accepted
}

function updatePage(page) {
  const { specs, themes, lines } = page;
  const view = page.view;
  const views = {};
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let interval = POLL_INTERVAL;
  let drawAttempts = 0;
  let announcedAt = Date.now();
  let drawnNotes = "";

  for (const table of document.querySelectorAll(".chart details")) table.open = false;
  document.documentElement.dataset.live = "yes";
  draw();
  dark.addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) draw();
    width = innerWidth;
  });
  for (const plot of document.querySelectorAll("[data-chart]")) addPointing(plot);
  for (const button of document.querySelectorAll("[data-png]")) {
    button.hidden = false;
    button.addEventListener("click", () => savePng(button.dataset.png));
  }
  setTimeout(poll, POLL_INTERVAL);

  async function draw() {
    if (!view.points.round.length) return;
    const attempt = ++drawAttempts;
    drawnNotes = JSON.stringify(noteRows());
    await Promise.all([...document.querySelectorAll("[data-chart]")].map(async (plot) => {
      const chart = plot.dataset.chart;
      const data = rows(chart);
      if (!data.length) return plot.replaceChildren(placeholder("Nothing to draw yet."));
      const inner = document.createElement("div");
      inner.ariaHidden = "true"; // the figure says it in words and as a table
      try {
        const theme = structuredClone(themes[dark.matches ? "dark" : "light"]);
        theme.legend.columns = Math.max(1, Math.floor(plot.clientWidth / LEGEND_WIDTH));
        const spec = structuredClone(specs[chart]);
        const notes = noteRows();
        spec.datasets = { [chart]: data, notes };
        if (!notes.length) spec.layer = spec.layer.filter((part) => part.data?.name !== "notes");
        if (chart === "estimates") fitEstimates(spec);
        if (chart === "shares") spec.layer[0].encoding.color.scale.domain = view.arms;
        if (chart === "reward") widen(spec, data);
        if (hasFewPoints()) [spec, ...(spec.layer ?? [])].forEach(markPoints);
        plot.replaceChildren(inner);
        const drawn = await window.vegaEmbed(inner, spec, {
          mode: "vega-lite", actions: false, ast: true, config: theme, defaultStyle: false,
          renderer: "svg", tooltip: { disableDefaultStyle: true },
        });
        if (attempt !== drawAttempts) return drawn.finalize(); // there is a newer one
        views[chart]?.finalize();
        views[chart] = drawn;
      } catch (error) {
        console.error(error);
        plot.replaceChildren(
          placeholder("The chart could not be drawn. The table below shows the same."));
      }
    }));
    document.documentElement.dataset.drawn = view.shown;
  }

  function fitEstimates(spec) {
    spec.height = 28 * view.estimates.arm.length;
    if (view.estimates.best.some((share) => share !== null)) return;
    for (const { encoding } of spec.layer) encoding.tooltip.length = 4; // nothing is said of users
  }

  // An axis of one value would have no scale.
  function widen(spec, data) {
    const values = data.map((row) => row.value);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    if (high - low < 0.01) spec.layer[0].encoding.y.scale.domain = [low - 0.05, high + 0.05];
  }

  function hasFewPoints() {
    return view.points.round.length <= MAX_MARKED;
  }

  // A line or an area of one point has no length.
  function markPoints(part) {
    if (part.mark?.type === "line") part.mark.point = { size: 40 };
    if (part.mark?.type === "area" && view.points.round.length === 1) {
      part.mark = { ...part.mark, type: "bar", size: 60 };
    }
  }

  function rows(chart) {
    const points = view.points;
    if (chart === "estimates") {
      const { arm, mean, low, high, best, spread } = view.estimates;
      return arm
        .map((name, i) => ({
          arm: name, mean: mean[i], low: low[i], high: high[i], best: best[i], spread: spread[i],
        }))
        .filter((row) => row.mean !== null);
    }
    if (chart === "shares") {
      return view.arms.flatMap((arm, rank) =>
        points.round.map((round, i) => ({ round, arm, rank, share: points.shares[rank][i] })));
    }
    const value = (column, i) => (column in points ? points[column][i] : view[column]);
    // What comes first is drawn last, on top.
    return Object.entries(lines[chart]).reverse().flatMap(([column, what], rank) =>
      points.round
        .map((round, i) => ({ round, what, rank: -rank, value: value(column, i) }))
        .filter((row) => row.value !== null));
  }

  function noteRows() {
    const last = view.points.round.at(-1) ?? 0;
    return view.notes
      .map((note, i) => ({ round: note.round, label: String(i + 1), text: note.text }))
      .filter((note) => note.round <= last);
  }

  // What a chart shows at one point, as pairs of a label and a value.
  function valuesAt(chart, i) {
    const points = view.points;
    const text = (value, options) => value === null || value === undefined
      ? null : value.toLocaleString("en", options);
    if (chart === "shares") {
      const percent = { style: "percent", maximumFractionDigits: 1 };
      return view.arms.map((arm, rank) => [arm, text(points.shares[rank][i], percent)]).reverse();
    }
    const digits = { reward: 3, sizes: 1, groups: 1 }[chart];
    const options = { maximumFractionDigits: digits, minimumFractionDigits: chart === "reward" ? 3 : 0 };
    const pairs = Object.entries(lines[chart]).map(([column, label]) =>
      [label, text(column in points ? points[column][i] : view[column], options)]);
    if (chart === "sizes") pairs.push(["smallest crowd", text(points.crowd[i])]);
    if (chart === "reward" && points.reward[i] === null) pairs[0][1] = "not measured";
    return pairs;
  }

  // A line at the nearest point, by mouse, touch or arrow keys, and all values there.
  function addPointing(plot) {
    const chart = plot.dataset.chart;
    if (!OVER_ROUNDS.includes(chart)) return;
    const figure = plot.closest("figure");
    const line = figure.appendChild(Object.assign(document.createElement("div"), { className: "at" }));
    const tip = figure.appendChild(Object.assign(document.createElement("div"), { className: "tip" }));
    line.hidden = tip.hidden = true;
    tip.setAttribute("role", "status");
    plot.tabIndex = 0;
    let current = -1;
    const hide = () => { line.hidden = tip.hidden = true; current = -1; };
    plot.addEventListener("pointermove", (event) => {
      const drawn = views[chart]?.view;
      if (!drawn) return;
      const left = event.clientX - plot.getBoundingClientRect().left - drawn.origin()[0];
      if (left < -5 || left > drawn.width() + 5) return hide();
      show(nearest(drawn.scale("x").invert(left)));
    });
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const last = view.points.round.length - 1;
      const places = {
        ArrowLeft: current < 0 ? last : current - 1, ArrowRight: current < 0 ? 0 : current + 1,
        Home: 0, End: last,
      };
      if (event.key === "Escape") return hide();
      if (!(event.key in places) || !views[chart]) return;
      event.preventDefault();
      show(Math.min(last, Math.max(0, places[event.key])));
    });

    function show(i) {
      const drawn = views[chart].view;
      const box = plot.getBoundingClientRect();
      const frame = figure.getBoundingClientRect();
      const [left, top] = drawn.origin();
      const x = box.left - frame.left + left + drawn.scale("x")(view.points.round[i]);
      Object.assign(line.style, {
        left: `${x}px`, top: `${box.top - frame.top + top}px`, height: `${drawn.height()}px`,
      });
      if (i !== current || tip.hidden) tip.replaceChildren(...tipContent(chart, i));
      current = i;
      line.hidden = tip.hidden = false;
      const room = frame.width - tip.offsetWidth - 8;
      const beside = x + 12 > room ? x - 12 - tip.offsetWidth : x + 12;
      Object.assign(tip.style, {
        left: `${Math.max(8, Math.min(room, beside))}px`, top: `${box.top - frame.top + top}px`,
      });
    }
  }

  function nearest(round) {
    const rounds = view.points.round;
    const distances = rounds.map((other) => Math.abs(other - round));
    return distances.indexOf(Math.min(...distances));
  }

  function tipContent(chart, i) {
    const { round, time } = view.points;
    const first = (round[i - 1] ?? 0) + 1;
    const head = document.createElement("strong");
    head.textContent = first < round[i] ? `Rounds ${first} to ${round[i]}` : `Round ${round[i]}`;
    const when = document.createElement("span");
    when.className = "how";
    if (time[i]) when.textContent = `${new Date(time[i]).toLocaleString("en-GB", {
      day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
      timeZone: "UTC",
    })} UTC`;
    const table = document.createElement("table");
    for (const [label, value] of valuesAt(chart, i)) {
      if (value !== null) table.append(row([label, value]));
    }
    const notes = view.notes
      .map((note, k) => [note.round, `${k + 1}: ${note.text}`])
      .filter(([at]) => at >= first && at <= round[i])
      .map(([, text]) => Object.assign(document.createElement("p"), { textContent: text }));
    return [head, when, table, ...notes];
  }

  // The chart with a title, as a file; what it shows is what the page shows.
  async function savePng(chart) {
    const drawn = views[chart]?.view;
    if (!drawn) return;
    const scale = 2;
    const picture = await drawn.toCanvas(scale);
    const style = getComputedStyle(document.documentElement);
    const canvas = document.createElement("canvas");
    const [pad, headline] = [16 * scale, 52 * scale];
    canvas.width = picture.width + 2 * pad;
    canvas.height = picture.height + headline + 2 * pad;
    const pen = canvas.getContext("2d");
    pen.fillStyle = style.getPropertyValue("--card");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = style.getPropertyValue("--ink");
    pen.font = `600 ${15 * scale}px system-ui, sans-serif`;
    const title = document.querySelector(`#chart-${chart} h2`).textContent;
    pen.fillText(`${view.campaign}: ${title}`, pad, pad + 14 * scale);
    pen.fillStyle = style.getPropertyValue("--soft");
    pen.font = `${12 * scale}px system-ui, sans-serif`;
    const day = new Date(view.points.time.at(-1) ?? Date.now()).toISOString().slice(0, 10);
    pen.fillText(
      `${view.words.rounds} rounds to ${day}; at least ${view.least} users behind every total`,
      pad, pad + 34 * scale);
    pen.drawImage(picture, pad, pad + headline);
    canvas.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${view.campaign}-${chart}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }

  async function poll() {
    if (document.hidden) return setTimeout(poll, POLL_INTERVAL);
    try {
      let update = await read(view.shown, view.width);
      if (update?.start && armsChanged(update)) update = await read(0, 0);
      if (!update) return showStatus("Your session has ended.", "Log in again");
      await applyUpdate(update);
      showStatus("");
      interval = POLL_INTERVAL;
    } catch {
      showStatus("The connection is lost. Trying again…");
      interval = Math.min(MAX_INTERVAL, 1.5 * interval);
    }
    setTimeout(poll, interval);
  }

  async function read(after, width) {
    const query = `after=${after}&width=${width}`;
    const answer = await fetch(`/v1/campaigns/${view.campaign}/progress?${query}`);
    if (answer.status === 401) return null;
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  }

  function armsChanged(update) {
    return update.arms.join("\n") !== view.arms.join("\n");
  }

  async function applyUpdate(update) {
    const state = view.now.state + view.now.number;
    const newArms = armsChanged(update);
    const newNotes = update.heard && JSON.stringify(update.notes) !== JSON.stringify(view.notes);
    const same = update.shown === view.shown && update.width === view.width && !newArms
      && !newNotes;
    if (update.heard) merge(update);
    else Object.assign(view, { now: update.now, words: { ...view.words, state: update.words.state } });
    document.getElementById("unheard").hidden = update.heard;
    for (const place of document.querySelectorAll("[data-words]")) {
      const text = view.words[place.dataset.words] ?? "";
      if (place.textContent !== text) place.textContent = text;
      place.classList.toggle("wordy", /^[a-z]/.test(text));
    }
    announce(view.words.state);
    const badge = document.querySelector("[data-badge]");
    badge.textContent = view.now.state;
    badge.className = `badge ${view.now.state}`;
    if (view.now.state + view.now.number !== state) await refresh("actions");
    if (newNotes) await refresh("notes");
    if (same || !update.heard) return;
    document.getElementById("empty").hidden = view.points.round.length;
    document.getElementById("charts").hidden = !view.points.round.length;
    for (const body of document.querySelectorAll("[data-table]")) {
      body.replaceChildren(...view.tables[body.dataset.table].map((cells) => row(cells)));
    }
    if (newArms) document.querySelector("[data-head=shares]")
      .replaceChildren(row(["round", "released, UTC", ...view.arms], "col"));
    for (const plot of document.querySelectorAll("[data-chart]")) {
      const chart = plot.dataset.chart;
      const title = plot.closest("figure").querySelector("h2").textContent;
      plot.setAttribute("aria-label", `${title}. ${view.words[`caption_${chart}`] ?? ""}`);
    }
    const charts = Object.keys(specs);
    const otherNotes = drawnNotes !== JSON.stringify(noteRows());
    if (newArms || otherNotes || hasFewPoints() || !charts.every((chart) => views[chart])) return draw();
    for (const chart of charts) views[chart].view.data(chart, rows(chart)).run();
    document.documentElement.dataset.drawn = view.shown;
  }

  function merge(update) {
    const points = view.points;
    for (const [column, values] of Object.entries(update.points)) {
      points[column] = column === "shares"
        ? values.map((share, i) => [...(points.shares[i] ?? []).slice(0, update.start), ...share])
        : [...points[column].slice(0, update.start), ...values];
    }
    Object.assign(view, update, { points });
  }

  // For screen readers; rounds may follow each other faster than anyone can listen.
  function announce(text) {
    const place = document.getElementById("aloud");
    if (Date.now() - announcedAt < ANNOUNCE_INTERVAL || place.textContent === text) return;
    place.textContent = text;
    announcedAt = Date.now();
  }

  // Which round can be opened or closed, and which note removed, is for the server to say.
  async function refresh(id) {
    const place = document.getElementById(id);
    if (!place) return;
    if (place.contains(document.activeElement)) {
      return place.addEventListener("focusout", () => refresh(id), { once: true });
    }
    const answer = await fetch(location.pathname);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = fresh.getElementById(id);
    if (part) place.replaceWith(part);
  }
}

function placeholder(text) {
  const paragraph = document.createElement("p");
  paragraph.className = "waiting";
  paragraph.textContent = text;
  return paragraph;
}

function row(cells, scope = "row") {
  const line = document.createElement("tr");
  cells.forEach((text, i) => {
    const heads = !i || scope === "col";
    const cell = document.createElement(heads ? "th" : "td");
    if (heads) cell.scope = scope;
    cell.textContent = text;
    line.append(cell);
  });
  return line;
}

function showStatus(text, action) {
  const place = document.getElementById("lost");
  if (place.textContent === text) return;
  place.replaceChildren(text);
  if (action) {
    const link = document.createElement("a");
    link.href = `/login?next=${location.pathname}`;
    link.textContent = action;
    place.append(" ", link);
  }
  place.hidden = !text;
}
