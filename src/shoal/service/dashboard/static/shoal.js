// Draws the charts and keeps a campaign's page fresh; checks a new campaign as one types.

const PAUSE = 1000; // milliseconds between two looks
const LONGEST = 15000;

const holder = document.getElementById("data");
const form = document.querySelector("form[data-check]");
if (holder) watch(JSON.parse(holder.textContent));
if (form) check(form);

function watch(page) {
  const { specs, themes, lines } = page;
  const view = page.view;
  const views = {};
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let pause = PAUSE;
  let drawing = 0;

  draw();
  dark.addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) draw();
    width = innerWidth;
  });
  setTimeout(look, PAUSE);

  async function draw() {
    if (!view.points.round.length) return;
    const turn = ++drawing;
    await Promise.all([...document.querySelectorAll("[data-chart]")].map(async (plot) => {
      const chart = plot.dataset.chart;
      const data = rows(chart);
      if (!data.length) return plot.replaceChildren(waiting("Nothing to draw yet."));
      const inner = document.createElement("div");
      inner.ariaHidden = "true"; // the figure says it in words and as a table
      try {
        const theme = structuredClone(themes[dark.matches ? "dark" : "light"]);
        theme.legend.columns = Math.max(1, Math.floor(plot.clientWidth / 190));
        const spec = structuredClone(specs[chart]);
        spec.datasets = { [chart]: data };
        if (chart === "estimates") spec.height = 28 * view.estimates.arm.length;
        if (chart === "shares") spec.encoding.color.scale.domain = view.arms;
        plot.replaceChildren(inner);
        const drawn = await window.vegaEmbed(inner, spec, {
          mode: "vega-lite", actions: false, ast: true, config: theme, defaultStyle: false,
          renderer: "svg", tooltip: { disableDefaultStyle: true },
        });
        if (turn !== drawing) return drawn.finalize(); // there is a newer one
        views[chart]?.finalize();
        views[chart] = drawn;
      } catch (error) {
        console.error(error);
        plot.replaceChildren(
          waiting("The chart could not be drawn. The table below shows the same."));
      }
    }));
    document.documentElement.dataset.drawn = view.shown;
  }

  function rows(chart) {
    const points = view.points;
    if (chart === "estimates") {
      const { arm, mean, low, high } = view.estimates;
      return arm
        .map((name, i) => ({ arm: name, mean: mean[i], low: low[i], high: high[i] }))
        .filter((row) => row.mean !== null);
    }
    if (chart === "shares") {
      return view.arms.flatMap((arm, rank) =>
        points.round.map((round, i) => ({ round, arm, rank, share: points.shares[rank][i] })));
    }
    // What comes first is drawn last, on top.
    return Object.entries(lines[chart]).reverse().flatMap(([column, what], rank) =>
      points.round
        .map((round, i) => ({ round, what, rank: -rank, value: points[column][i] }))
        .filter((row) => row.value !== null));
  }

  async function look() {
    if (document.hidden) return setTimeout(look, PAUSE);
    const query = `after=${view.shown}&width=${view.width}`;
    try {
      const answer = await fetch(`/v1/campaigns/${view.campaign}/progress?${query}`);
      if (answer.status === 401) return say("Your session has ended.", "Log in again");
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      await take(await answer.json());
      say("");
      pause = PAUSE;
    } catch {
      say("The connection is lost. Trying again…");
      pause = Math.min(LONGEST, 1.5 * pause);
    }
    setTimeout(look, pause);
  }

  async function take(news) {
    const state = view.now.state + view.now.number;
    const same = news.shown === view.shown && news.width === view.width;
    const known = view.points;
    for (const [column, values] of Object.entries(news.points)) {
      known[column] = column === "shares"
        ? values.map((own, i) => [...(known.shares[i] ?? []).slice(0, news.start), ...own])
        : [...known[column].slice(0, news.start), ...values];
    }
    const rearranged = news.arms.join("\n") !== view.arms.join("\n");
    Object.assign(view, news, { points: known });
    for (const place of document.querySelectorAll("[data-words]")) {
      const text = view.words[place.dataset.words] ?? "";
      if (place.textContent !== text) place.textContent = text;
    }
    const badge = document.querySelector("[data-badge]");
    badge.textContent = view.now.state;
    badge.className = `badge ${view.now.state}`;
    if (view.now.state + view.now.number !== state) await refreshActions();
    if (same) return;
    if (rearranged) return location.reload(); // arms came or went: tables need other columns
    if (view.heard) document.querySelector("[data-unheard]")?.remove();
    document.getElementById("empty").hidden = true;
    document.getElementById("charts").hidden = false;
    for (const body of document.querySelectorAll("[data-table]")) {
      body.replaceChildren(...view.tables[body.dataset.table].map(row));
    }
    for (const plot of document.querySelectorAll("[data-chart]")) {
      const chart = plot.dataset.chart;
      const title = plot.closest("figure").querySelector("h2").textContent;
      plot.setAttribute("aria-label", `${title}. ${view.words[`caption_${chart}`] ?? ""}`);
      if (!views[chart]) return draw();
      views[chart].view.data(chart, rows(chart)).run();
    }
    document.documentElement.dataset.drawn = view.shown;
  }

  // Which round can be opened or closed is for the server to say.
  async function refreshActions() {
    const place = document.getElementById("actions");
    if (!place) return;
    const answer = await fetch(location.pathname);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const actions = fresh.getElementById("actions");
    if (actions && !place.contains(document.activeElement)) place.replaceWith(actions);
  }
}

function waiting(text) {
  const said = document.createElement("p");
  said.className = "waiting";
  said.textContent = text;
  return said;
}

function row(cells) {
  const line = document.createElement("tr");
  cells.forEach((text, i) => {
    const cell = document.createElement(i ? "td" : "th");
    if (!i) cell.scope = "row";
    cell.textContent = text;
    line.append(cell);
  });
  return line;
}

function say(text, action) {
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

function check(form) {
  const touched = new Set();
  let timer = 0;
  form.addEventListener("input", (event) => {
    touched.add(event.target.name);
    clearTimeout(timer);
    timer = setTimeout(ask, 250);
  });

  async function ask() {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.check, { method: "POST", body }).catch(() => null);
    if (!answer?.ok) return; // sending the form says the same
    const errors = await answer.json();
    for (const field of touched) {
      const place = document.getElementById(`${field}-error`);
      if (!place) continue;
      place.textContent = errors[field] ?? "";
      const input = form.elements[field];
      if (errors[field]) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }
}
