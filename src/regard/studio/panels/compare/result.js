// What a comparison found: the table, the paired tests, quality by length, and the sentences that tell the runs apart.

import {link} from "../../address.js";
import {element} from "../../element.js";
import {lineChart} from "../../pieces/chart.js";
import {count} from "../../pieces/runs.js";
import {sideBySide} from "./inside.js";

const LEVEL = 0.05; // a smaller p is called significant
const SIGNS = "*†‡§¶abcdefghijklmnopqrstuvwxyz";
const LOWER = ["TER", "perplexity/word", "perplexity/byte", "MASE (%)", "CRPS (%)", "sMAPE (%)"];

/** @param {any} found as `regard compare --json` has it */
export function comparisonResult(found, runs) {
  const charts = [];
  const parts = [table(found), tests(found), lengths(found, charts), sentences(found, runs, charts), conditions(found)];
  return {node: element("div", parts.filter(Boolean)), leave: () => charts.forEach((chart) => chart.leave())};
}

const better = ({metric, first, second, difference}) =>
  (LOWER.includes(metric) ? difference <= 0 : difference >= 0) ? second : first;
const other = (verdict) => (better(verdict) === verdict.first ? verdict.second : verdict.first);

/** A p value, never rounded to the better side of a bound. */
export function chance(p) {
  for (const bound of [0.001, 0.01]) if (p < bound) return `p < ${bound}`;
  return p >= 0.045 && p < 0.055 ? `p = ${p.toFixed(3)}` : `p = ${p.toFixed(2)}`;
}

const margin = ({low, high}) => (low == null || high == null ? null : (high - low) / 2);
const duration = (seconds) =>
  seconds == null ? "–" : seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;

function table({rows, metrics, verdicts, conditions: about}) {
  const beaten = (name) =>
    verdicts
      .filter((verdict) => verdict.metric === metrics[0] && better(verdict) === name && verdict.bootstrap < LEVEL)
      .map(other);
  const heads = ["", ...metrics, "parameters", "trained", "ms a sentence"];
  const best = Object.fromEntries(
    metrics.map((metric) => {
      const scores = rows.flatMap((row) => row.scores.filter(({name}) => name === metric).map(({score}) => score));
      return [metric, (LOWER.includes(metric) ? Math.min : Math.max)(...scores)];
    }),
  );
  const cell = (row, metric, place) => {
    const found = row.scores.find(({name}) => name === metric);
    if (!found) return element("td", "–");
    const spread = margin(found);
    const signs = place
      ? ""
      : beaten(row.name)
          .map((name) => SIGNS[rows.findIndex((each) => each.name === name)])
          .join("");
    return element(
      "td",
      {class: found.score === best[metric] ? "best" : null},
      found.score.toFixed(1),
      spread == null ? null : element("small", ` ±${spread.toFixed(1)}`),
      signs ? element("sup", ` ${signs}`) : null,
    );
  };
  const body = rows.map((row) =>
    element(
      "tr",
      element("th", {scope: "row"}, row.name),
      metrics.map((metric, place) => cell(row, metric, place)),
      element("td", row.cost.parameters == null ? "–" : count(row.cost.parameters)),
      element("td", duration(row.cost.seconds)),
      element("td", row.cost.milliseconds == null ? "–" : row.cost.milliseconds.toFixed(1)),
    ),
  );
  const legend = rows.flatMap((row, place) => {
    const ps = verdicts
      .filter((verdict) => verdict.metric === metrics[0] && verdict.bootstrap < LEVEL && other(verdict) === row.name)
      .map(({bootstrap}) => bootstrap);
    return ps.length ? [`${SIGNS[place]} better than ${row.name}, ${chance(Math.max(...ps))}`] : [];
  });
  const line = legend.length
    ? `${legend.join(" · ")} (paired bootstrap, ${about.resamples.toLocaleString("en")} resamples)`
    : verdicts.length
      ? `No difference in ${metrics[0]} is more than luck (paired bootstrap, ` +
        `${about.resamples.toLocaleString("en")} resamples).`
      : "";
  return element(
    "section.card",
    {"aria-labelledby": "scores-title"},
    element("h2", {id: "scores-title"}, headline({rows, metrics, verdicts})),
    element("p.note", `${about.sentences.toLocaleString("en")} sentences: ${about.data}.`),
    (about.learned ?? []).map((remark) => element("p.note", `${remark}.`)),
    element(
      "div.scroll",
      {tabindex: 0, role: "region", "aria-label": "Scores"},
      element(
        "table.scores",
        element(
          "thead",
          element(
            "tr",
            heads.map((name) => (name ? element("th", {scope: "col"}, name) : element("td"))),
          ),
        ),
        element("tbody", body),
      ),
    ),
    line ? element("p.note", line) : null,
    rows[0]?.scores[0]?.signature
      ? element(
          "p.note",
          "± is half of the 95 % interval. ",
          element("code", `${metrics[0]}|${rows[0].scores[0].signature}`),
        )
      : null,
  );
}

/** The verdict in words. */
export function headline({rows, metrics, verdicts}) {
  const ranked = rows
    .filter((row) => row.scores.length)
    .sort((one, two) => (LOWER.includes(metrics[0]) ? 1 : -1) * (one.scores[0].score - two.scores[0].score));
  if (ranked.length < 2) return "Scores";
  const [first, second] = ranked;
  if (first.scores[0].score === second.scores[0].score) return `${first.name} and ${second.name} score the same`;
  const verdict = verdicts.find(
    (each) =>
      each.metric === metrics[0] &&
      [each.first, each.second].includes(first.name) &&
      [each.first, each.second].includes(second.name),
  );
  if (!verdict) return `${first.name} scores highest`;
  return verdict.bootstrap < LEVEL ? `${first.name} is better` : `${first.name} scores highest, but it may be luck`;
}

function tests({verdicts}) {
  if (!verdicts.length) return null;
  const rows = verdicts.map((verdict) =>
    element(
      "tr",
      element("th", {scope: "row"}, `${other(verdict)} → ${better(verdict)}`),
      element("td.left", verdict.metric),
      element("td", `+${Math.abs(verdict.difference).toFixed(2)}`),
      element("td", chance(verdict.bootstrap)),
      element("td", chance(verdict.randomisation)),
    ),
  );
  const heads = ["from → to", "measure", "difference", "paired bootstrap", "randomisation"];
  return element(
    "section.card",
    {"aria-labelledby": "tests-title"},
    element("h2", {id: "tests-title"}, "Is it luck?"),
    element("p.note", "How often chance alone would give a difference as large. Below 0.05 it is called significant."),
    element(
      "div.scroll",
      {tabindex: 0, role: "region", "aria-label": "Paired tests"},
      element(
        "table",
        element(
          "thead",
          element(
            "tr",
            heads.map((name, place) => element("th", {scope: "col", class: place === 1 ? "left" : null}, name)),
          ),
        ),
        element("tbody", rows),
      ),
    ),
  );
}

function lengths({rows, metrics}, charts) {
  const measured = rows.filter((row) => row.lengths.length);
  if (!measured.length) return null;
  const names = measured[0].lengths.map(({name}) => name);
  const counts = measured[0].lengths.map((bucket) => bucket.count);
  const few = counts.some((each, place) => measured.every((row) => row.lengths[place].quality == null));
  const chart = lineChart({
    title: `${metrics[0]} by length`,
    x: {label: "words of the source", names: names.map((name, place) => `${name} (${counts[place]})`)},
    y: {label: metrics[0], most: LOWER.includes(metrics[0]) ? Infinity : 100},
    digits: 1,
    height: 280,
  });
  charts.push(chart);
  chart.show(
    measured.map((row) => ({
      name: row.name,
      points: row.lengths.map(({quality, count: size}, place) => ({
        x: place,
        y: quality?.score ?? null,
        low: quality?.low,
        high: quality?.high,
        note: `${size} sentences`,
      })),
    })),
  );
  return element(
    "section.card",
    {"aria-labelledby": "lengths-title"},
    element("h2", {id: "lengths-title"}, `${metrics[0]} by length`),
    element(
      "p.note",
      "Where each gives up. In brackets how many sentences there are; bars are 95 % intervals." +
        `${few ? " Lengths with fewer than 30 sentences get no score: it would say little." : ""}`,
    ),
    chart.node,
  );
}

function sentences({differing, rows, conditions: about}, runs, maps) {
  if (!differing.length) return null;
  const known = new Set(runs.map(({name}) => name));
  const one = ({line, source, reference, outputs, scores}) =>
    element(
      "li",
      element("p.source", {dir: "auto"}, source),
      element("p.note", {dir: "auto"}, `line ${line} · reference: ${reference}`),
      element(
        "dl",
        outputs.flatMap((output, place) => {
          const {name} = rows[place];
          return [
            element("dt", name),
            element("dd", {dir: "auto"}, output || "(nothing)"),
            element(
              "dd.tell.number",
              `chrF2 ${scores[place].toFixed(0)} `,
              known.has(name)
                ? element(
                    "a",
                    {
                      href: link("look", {run: name, text: source}),
                      "aria-label": `Look inside ${name} at this sentence`,
                    },
                    "look inside",
                  )
                : null,
            ),
          ];
        }),
      ),
      sideBySide({
        text: source,
        runs: rows.map(({name}) => name).filter((name) => known.has(name)),
        beam: about.beam,
        maps,
      }),
    );
  return element(
    "section.card",
    {"aria-labelledby": "sentences-title"},
    element("h2", {id: "sentences-title"}, "Where they differ most"),
    element(
      "p.note",
      "The sentences with the largest distance between the best and the worst output, by chrF2 of the sentence alone.",
    ),
    element("ol.pairs", differing.map(one)),
  );
}

function conditions({conditions: about, rows}) {
  const facts = [
    about.beam == null ? "" : `beam ${about.beam}`,
    about.device,
    `${about.threads} threads`,
    `seed ${about.seed}`,
    ...Object.entries(about.versions).map(([name, version]) => `${name} ${version}`),
    `text ${about.sha256.slice(0, 12)}…`,
  ].filter(Boolean);
  return element(
    "details",
    element("summary", "How the numbers came about"),
    element("p.note", facts.join(" · ")),
    element(
      "ul.note",
      rows.map((row) => element("li", `${row.name}: ${row.origin}`)),
    ),
  );
}
