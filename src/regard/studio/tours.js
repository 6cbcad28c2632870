// Guided tours: a few stops, each a page with its address and a sentence that says what to see there. What the
// sentences say is tested against the run that comes with the package.

import {link, read} from "./address.js";
import {get} from "./api.js";
import {element} from "./element.js";
import {announce, toast} from "./pieces/announce.js";
import {chosenRun, ofWords, usable} from "./pieces/runs.js";

const CAT = "The black cat ate the mouse.";

/** The run of the built-in corpus that a tour shows; of other runs nobody has tested what they show. */
const able = (runs) => ofWords(usable(runs, "translate"));
const own = (runs) => able(runs).find(({name}) => name === "demo") ?? chosenRun(runs, ["translate"], "", true).run;
const plain = (runs) => able(runs).find(({attention}) => attention === false);
const foreign = (runs) => usable(runs).find(({origin}) => origin);

/**
 * @typedef {{page: string, values: (runs: any[]) => Record<string, any> | null, say: string}} Stop  `values`: null where
 *   there is no run for it, and the stop is left out
 * @type {Record<string, {title: string, stops: Stop[]}>}
 */
export const TOURS = {
  "why-attention": {
    title: "Why attention",
    stops: [
      {
        page: "map",
        values: (runs) => (plain(runs) ? {run: plain(runs).name, text: CAT} : null),
        say: "A model without attention. Its decoder gets the sentence through one vector, however long it is.",
      },
      {
        page: "map",
        values: (runs) => ({run: own(runs).name, text: CAT}),
        say: "A model with attention. Every layer of the decoder looks at all vectors of the encoder: follow the lines.",
      },
      {
        page: "look",
        values: (runs) => ({run: own(runs).name, text: CAT}),
        say: "chat looks at cat and noir at black: the lines cross, for French has the adjective after the noun.",
      },
      {
        page: "look",
        values: (runs) => ({run: own(runs).name, text: CAT, edits: '[{"kind":"mask-word","word":1}]'}),
        say: "The same with black hidden. The bar at the foot shows before and after: noir is gone.",
      },
      {
        page: "learn",
        values: (runs) => ({run: own(runs).name, text: CAT}),
        say: "The numbers of it: the short way through one word, from pieces to probabilities.",
      },
    ],
  },
  bank: {
    title: "One word, two meanings: bank",
    stops: [
      {
        page: "look",
        values: (runs) => ({run: own(runs).name, text: "The banker counted the money in the bank."}),
        say: "A bank with money in it is a banque.",
      },
      {
        page: "look",
        values: (runs) => ({run: own(runs).name, text: "The duck slept on the bank."}),
        say: "A bank that a duck sleeps on is a rive. It is the same English word, so its embedding is the same.",
      },
      {
        page: "meaning",
        values: (runs) => ({run: own(runs).name}),
        say: "Layer by layer its vectors part: those that are translated alike stay closer than those that are not.",
      },
    ],
  },
  beam: {
    title: "What a wider beam finds",
    stops: [
      {
        page: "beam",
        values: (runs) => ({run: own(runs).name, text: BEAMED, beam: 1}),
        say: "A beam of 1 takes the likeliest piece at each step and cannot take it back: it writes Anna’s letter, and the brother is gone.",
      },
      {
        page: "beam",
        values: (runs) => ({run: own(runs).name, text: BEAMED, beam: 5}),
        say: "A beam of 5 keeps other beginnings alive and finds au frère d’Anna (to Anna’s brother): a translation that is more probable.",
      },
    ],
  },
  import: {
    title: "Somebody else’s model",
    stops: [
      {
        page: "runs",
        values: (runs) => ({run: foreign(runs)?.name ?? ""}),
        say: "A model from elsewhere (Marian, Hugging Face, fairseq, CTranslate2) becomes a run: regard import WHAT.",
      },
      {
        page: "map",
        values: (runs) => (foreign(runs) ? {run: foreign(runs).name} : null),
        say: "It is drawn like any other: its own layers, heads and sizes.",
      },
      {
        page: "look",
        values: (runs) => (foreign(runs) ? {run: foreign(runs).name} : null),
        say: "And it can be looked into, word by word.",
      },
    ],
  },
};

/** A sentence for which beams of 1 and 5 differ, and the wider one's output is the more probable. */
export const BEAMED = "We sent Anna's brother the letter yesterday.";

let bar;

/** Begin a tour, by its name. */
export async function startTour(name) {
  const tour = TOURS[name];
  if (!tour) return nowhere(`There is no tour named ${name}; the help lists all`);
  const {runs} = await get("/api/v1/runs", {lasting: true});
  if (!able(runs).length) return nowhere("A tour needs a run that translates");
  const stops = tour.stops.flatMap((stop) => {
    const values = stop.values(runs);
    return values ? [{...stop, href: link(stop.page, values)}] : [];
  });
  return show(tour, stops, 0);
}

/** Why there is no tour; with a page below, not an empty one. */
function nowhere(words) {
  toast(words, {bad: true});
  if (read().page === "tour") location.replace("#translate");
}

function show(tour, stops, place) {
  const stop = stops[place];
  const last = place === stops.length - 1;
  const go = (to) => () => show(tour, stops, to);
  bar?.remove();
  const end = () => bar.remove();
  const next = last
    ? element("button.primary.small", {onclick: end}, "Done")
    : element("button.primary.small", {onclick: go(place + 1)}, "Next →");
  bar = element(
    "section.tour",
    {role: "region", "aria-label": `Tour: ${tour.title}`},
    element("p.note", `${tour.title} · ${place + 1} of ${stops.length}`),
    element("p.tour-say", stop.say),
    element(
      "div.row",
      place ? element("button.small", {onclick: go(place - 1)}, "← Back") : null,
      next,
      last ? null : element("button.quiet.small", {onclick: end}, "End"),
    ),
  );
  document.body.append(bar);
  announce(stop.say);
  if (location.hash !== stop.href) location.hash = stop.href;
  next.focus({preventScroll: true});
}

/** All tours, as links that can be shared. */
export const tourLinks = (onclick = () => {}) =>
  Object.entries(TOURS).map(([name, {title}]) => element("a", {href: `#tour?name=${name}`, onclick}, title));
