// A forecast drawn: what was read, the medians with intervals of 80 and 90 %, the naive forecast, and behind what was
// read how much one moment ahead hangs on each of its moments.

import {lineChart} from "./chart.js";

const [LOW, LESS, MORE, HIGH] = [0.05, 0.1, 0.9, 0.95];
const STRONGEST = 0.5;

/**
 * @typedef {{context: (number | null)[][], first: number, forecast: number[][], levels: number[], quantiles: number[][][],
 *   naive: number[][], weights: number[][], method: string, methods: string[]}} Forecasted  as /api/v1/forecast has it
 * @param {Forecasted} found  @param {number} [height]
 */
export function forecastChart(found, height = 320) {
  const {context, first, forecast, levels, quantiles, naive, weights} = found;
  const place = (share) => levels.findIndex((level) => Math.abs(level - share) < 1e-6);
  const ends = [LOW, HIGH, LESS, MORE].map(place);
  const far = forecast.flat().concat(context.flat().filter((one) => one != null));
  const spread = Math.max(...far) - Math.min(...far) || 1;
  const chart = lineChart({
    title: "The series and its forecast",
    x: {label: "moment", whole: true},
    y: {label: ""},
    digits: Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(spread)))),
    height,
  });
  const ahead = (values) => (_, moment) => ({x: first + context.length + moment, ...values(moment)});
  const show = ({channel = 0, moment = null} = {}) => {
    const row = moment == null ? [] : weights[moment];
    const most = Math.max(...row, 1e-12);
    chart.show(
      [
        {name: "read", points: context.map((vector, at) => ({x: first + at, y: vector[channel]})), hue: 0},
        {name: "naive", points: naive.map(ahead((at) => ({y: naive[at][channel]}))), hue: 3, dashed: true},
        {
          name: "median, 80 and 90 %",
          points: forecast.map(
            ahead((at) => {
              const [low, high, less, more] = ends.map((each) => quantiles[at][channel][each]);
              return {y: forecast[at][channel], low, high, near: [less, more]};
            }),
          ),
          hue: 2,
          band: true,
        },
      ],
      row.map((weight, at) => [first + at, (STRONGEST * weight) / most]),
    );
  };
  show();
  return {node: chart.node, show, leave: () => chart.leave()};
}

/** "+3 looked most at moment 96 (12 % of its weight)." @param {Forecasted} found  @param {number} moment */
export function lookedAt({weights, first, method}, moment) {
  const row = weights[moment];
  const total = row.reduce((sum, weight) => sum + weight, 0) || 1;
  const strongest = row.indexOf(Math.max(...row));
  const share = `${Math.round((100 * row[strongest]) / total)} %`;
  return method === "attention"
    ? `The forecast of +${moment + 1} looked most at moment ${first + strongest}, with ${share} of its attention.`
    : `The forecast of +${moment + 1} would change most with moment ${first + strongest}: ${share} of all gradients.`;
}
