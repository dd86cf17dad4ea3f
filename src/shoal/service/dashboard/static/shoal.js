// Draws the charts and keeps a campaign's page fresh; checks a new campaign as one types.

const PAUSE = 1000; // milliseconds between two looks
const LONGEST = 15000;
const SILENCE = 30000; // between two announcements to a screen reader
const LEGEND = 200; // pixels of a name in a legend
const FEW = 12; // points that are marked one by one
const DRAFT = "draft"; // a campaign that was sent and is not made yet

const holder = document.getElementById("data");
const form = document.querySelector("form[data-check]");
if (holder) watch(JSON.parse(holder.textContent));
if (form) {
  keep(form);
  check(form);
} else if (holder) sessionStorage.removeItem(DRAFT);

function watch(page) {
  const { specs, themes, lines } = page;
  const view = page.view;
  const views = {};
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let pause = PAUSE;
  let drawing = 0;
  let spoken = Date.now();

  for (const table of document.querySelectorAll(".chart details")) table.open = false;
  document.documentElement.dataset.live = "yes";
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
        theme.legend.columns = Math.max(1, Math.floor(plot.clientWidth / LEGEND));
        const spec = structuredClone(specs[chart]);
        spec.datasets = { [chart]: data };
        if (chart === "estimates") spec.height = 28 * view.estimates.arm.length;
        if (chart === "shares") spec.encoding.color.scale.domain = view.arms;
        if (few()) [spec, ...(spec.layer ?? [])].forEach(show);
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

  function few() {
    return view.points.round.length <= FEW;
  }

  // A line or an area of one point has no length.
  function show(part) {
    if (part.mark?.type === "line") part.mark.point = { size: 40 };
    if (part.mark?.type === "area" && view.points.round.length === 1) {
      part.mark = { ...part.mark, type: "bar", size: 60 };
    }
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
    const value = (column, i) => (column in points ? points[column][i] : view[column]);
    // What comes first is drawn last, on top.
    return Object.entries(lines[chart]).reverse().flatMap(([column, what], rank) =>
      points.round
        .map((round, i) => ({ round, what, rank: -rank, value: value(column, i) }))
        .filter((row) => row.value !== null));
  }

  async function look() {
    if (document.hidden) return setTimeout(look, PAUSE);
    try {
      let news = await read(view.shown, view.width);
      if (news?.start && rearranged(news)) news = await read(0, 0);
      if (!news) return say("Your session has ended.", "Log in again");
      await take(news);
      say("");
      pause = PAUSE;
    } catch {
      say("The connection is lost. Trying again…");
      pause = Math.min(LONGEST, 1.5 * pause);
    }
    setTimeout(look, pause);
  }

  async function read(after, width) {
    const query = `after=${after}&width=${width}`;
    const answer = await fetch(`/v1/campaigns/${view.campaign}/progress?${query}`);
    if (answer.status === 401) return null;
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  }

  function rearranged(news) {
    return news.arms.join("\n") !== view.arms.join("\n");
  }

  async function take(news) {
    const state = view.now.state + view.now.number;
    const other = rearranged(news);
    const same = news.shown === view.shown && news.width === view.width && !other;
    if (news.heard) merge(news);
    else Object.assign(view, { now: news.now, words: { ...view.words, state: news.words.state } });
    document.getElementById("unheard").hidden = news.heard;
    for (const place of document.querySelectorAll("[data-words]")) {
      const text = view.words[place.dataset.words] ?? "";
      if (place.textContent !== text) place.textContent = text;
    }
    speak(view.words.state);
    const badge = document.querySelector("[data-badge]");
    badge.textContent = view.now.state;
    badge.className = `badge ${view.now.state}`;
    if (view.now.state + view.now.number !== state) await refreshActions();
    if (same || !news.heard) return;
    document.getElementById("empty").hidden = view.points.round.length;
    document.getElementById("charts").hidden = !view.points.round.length;
    for (const body of document.querySelectorAll("[data-table]")) {
      body.replaceChildren(...view.tables[body.dataset.table].map((cells) => row(cells)));
    }
    if (other) document.querySelector("[data-head=shares]").replaceChildren(row(["round", ...view.arms], "col"));
    for (const plot of document.querySelectorAll("[data-chart]")) {
      const chart = plot.dataset.chart;
      const title = plot.closest("figure").querySelector("h2").textContent;
      plot.setAttribute("aria-label", `${title}. ${view.words[`caption_${chart}`] ?? ""}`);
    }
    const charts = Object.keys(specs);
    if (other || few() || !charts.every((chart) => views[chart])) return draw();
    for (const chart of charts) views[chart].view.data(chart, rows(chart)).run();
    document.documentElement.dataset.drawn = view.shown;
  }

  function merge(news) {
    const known = view.points;
    for (const [column, values] of Object.entries(news.points)) {
      known[column] = column === "shares"
        ? values.map((own, i) => [...(known.shares[i] ?? []).slice(0, news.start), ...own])
        : [...known[column].slice(0, news.start), ...values];
    }
    Object.assign(view, news, { points: known });
  }

  // For screen readers; rounds may follow each other faster than anyone can listen.
  function speak(text) {
    const place = document.getElementById("aloud");
    if (Date.now() - spoken < SILENCE || place.textContent === text) return;
    place.textContent = text;
    spoken = Date.now();
  }

  // Which round can be opened or closed is for the server to say.
  async function refreshActions() {
    const place = document.getElementById("actions");
    if (!place) return;
    if (place.contains(document.activeElement)) {
      return place.addEventListener("focusout", refreshActions, { once: true });
    }
    const answer = await fetch(location.pathname);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const actions = fresh.getElementById("actions");
    if (actions) place.replaceWith(actions);
  }
}

function waiting(text) {
  const said = document.createElement("p");
  said.className = "waiting";
  said.textContent = text;
  return said;
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
  const place = (input) => document.getElementById(`${input.name}-error`);
  // People may have typed before this script came, or have been refused once.
  const names = (test) => [...form.elements].filter(test).map((input) => input.name);
  const typed = names((input) => "defaultValue" in input && input.value !== input.defaultValue);
  const touched = new Set([...typed, ...names((input) => place(input)?.textContent)]);
  let timer = 0;
  let asked = 0;
  if (typed.length) ask();
  form.addEventListener("input", (event) => {
    touched.add(event.target.name);
    clearTimeout(timer);
    timer = setTimeout(ask, 250);
  });

  async function ask() {
    const turn = ++asked;
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.check, { method: "POST", body }).catch(() => null);
    if (!answer?.ok || answer.redirected) return; // sending the form says the same
    const errors = await answer.json();
    if (turn !== asked) return; // a newer answer is on its way
    for (const input of form.elements) {
      const said = place(input);
      if (!said || input.type === "checkbox") continue;
      // What nobody has filled in yet may be filled in still.
      const error = touched.has(input.name) || input.value ? errors[input.name] ?? "" : "";
      if (said.textContent !== error) said.textContent = error;
      if (error) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }
}

// If the session has ended meanwhile, what was sent is there again after logging in.
function keep(form) {
  const draft = JSON.parse(sessionStorage.getItem(DRAFT) ?? "{}");
  for (const [name, value] of Object.entries(draft)) {
    const input = form.elements[name];
    if (input.type === "checkbox") input.checked = true;
    else input.value = value;
  }
  sessionStorage.removeItem(DRAFT);
  form.addEventListener("submit", () => {
    const { csrf, sure, ...sent } = Object.fromEntries(new FormData(form));
    sessionStorage.setItem(DRAFT, JSON.stringify(sent));
  });
}
