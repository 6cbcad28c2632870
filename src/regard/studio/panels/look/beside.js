// Beside attention: what each word did, by any method. Attention says where a model looked; it need not be what decided.

import {latest, post} from "../../api.js";
import {element} from "../../element.js";
import {field, segmented} from "../../pieces/forms.js";
import {heatmap} from "../../pieces/heatmap.js";
import {unpack} from "../../pieces/packed.js";
import {percent} from "../../pieces/scales.js";
import {skeleton} from "../../pieces/skeleton.js";
import {trouble} from "../../pieces/trouble.js";
import {legible} from "./view.js";

// needs: what a run must have to be asked; rare: offered only where it was measured to be the most faithful; a state's
// methods cannot say why one word and not another
const KINDS = {
  masking: {
    text: "Masking",
    idea:
      "How far the log-probability of each output word falls when a word it read is blanked out. Below zero, " +
      "the word stood in the way.",
  },
  alti: {
    text: "ALTI+",
    needs: "layers",
    idea: "What each output word is made of, followed down through all layers to the words that were read.",
  },
  zeroing: {
    text: "Value zeroing",
    needs: "layers",
    idea: "How far a layer’s output turns when it cannot take anything from a word, followed down through all layers.",
  },
  norm: {
    text: "Norm of what attention took",
    needs: "attention",
    idea: "Attention weighed by what stood behind it: much looked at may be little taken.",
  },
  attention: {
    text: "Attention",
    needs: "attention",
    idea: "Where the model looked when it wrote each word, by the heads that its links are read from.",
  },
  rollout: {
    text: "Rollout",
    needs: "layers",
    idea: "Attention followed down through all layers. It is known to say less than the other methods.",
  },
  "integrated-gradients": {
    text: "Integrated gradients",
    idea: "The gradient gathered on the way from unknown words to those read; its parts sum to what all words did together.",
  },
  gradient: {
    text: "Gradient × input",
    idea: "A first guess of masking from one backward pass for each word; weak where the model is sure.",
  },
  saliency: {
    text: "Saliency",
    idea: "How steeply the output hangs on each word, whichever way.",
  },
  "masking-unknown": {
    text: "Masking, by an unknown word",
    rare: true,
    idea: "How far the log-probability of each output word falls when an unknown word stands in place of one it read.",
  },
  "masking-removed": {
    text: "Masking, by leaving out",
    rare: true,
    idea: "How far the log-probability of each output word falls when a word of the source is left out.",
  },
  "attention-reading": {
    text: "Attention of the next step",
    needs: "attention",
    rare: true,
    idea: "Where the model looked when it read each word that it had written.",
  },
  "attention, mean": {
    text: "Attention, mean of all heads",
    needs: "attention",
    rare: true,
    idea: "Where the model looked when it wrote each word, the mean of all heads.",
  },
  difference: {
    text: "Attention − masking",
    needs: "attention",
    idea:
      "Where looking and mattering part: blue, looked at more than it mattered; orange, " +
      "mattered more than it was looked at.",
  },
};
const OF_STATES = [
  "alti",
  "zeroing",
  "norm",
  "attention",
  "attention, mean",
  "attention-reading",
  "rollout",
  "difference",
];

/** @param {{onview: (values: object) => void}} actions */
export function besideCard({onview}) {
  const ask = latest();
  const maps = {
    share: heatmap({label: "What each word did"}),
    diverging: heatmap({label: "What each word did", scale: "diverging"}),
  };
  const menu = element("select", {
    onchange: () => onview({beside: menu.value === usual(trace) ? "" : menu.value}),
  });
  const [part, contrast] = [element("div"), element("p.row.why")];
  const [idea, origin, place] = [element("p.note.idea"), element("figcaption"), element("div")];
  const node = element(
    "section.card.beside",
    {"aria-labelledby": "beside-title"},
    element("h2", {id: "beside-title"}, "What each word did"),
    idea,
    element("div.row.end.selectors", field("Measure", menu), part),
    contrast,
    element("figure", place, origin),
  );
  /** @type {any} */
  let [question, trace, answered, against] = [null, null, null, null];
  let [kind, side] = ["masking", "source"];

  const offer = () => {
    const has = {
      attention: trace.attentions.length > 0,
      layers: trace.attentions.some(({name}) => name.endsWith("self")),
    };
    const offered = Object.keys(KINDS).filter(
      (name) =>
        (!KINDS[name].needs || has[KINDS[name].needs]) &&
        !(KINDS[name].rare && name !== usual(trace)) &&
        !(against && OF_STATES.includes(name)),
    );
    const best = trace.measured?.best;
    const text = (name) => KINDS[name].text + (name === best ? ", the most faithful here" : "");
    menu.replaceChildren(...offered.map((value) => element("option", {value}, text(value))));
    if (!offered.includes(kind)) kind = "masking";
    menu.value = kind;
    const caution = trace.measured?.methods.find(({method}) => method === kind)?.caution;
    const measured = kind === best ? ` Measured: ${trace.measured.told}.` : "";
    idea.replaceChildren(KINDS[kind].idea + measured, caution ? element("strong", ` Caution: it ${caution}.`) : "");
    contrast.hidden = !against;
    if (against) {
      const [written, other] = [trace.target.pieces[against.step], against.piece].map((piece) =>
        element("strong", {dir: "auto"}, legible(piece)),
      );
      const all = element("button.small.quiet", {onclick: () => contrastWith(null)}, "All words");
      contrast.replaceChildren(element("span", "Why ", written, " and not ", other, "?"), all);
    }
  };

  /** @param {{piece: string, step: number} | null} other  another word instead, or none */
  const contrastWith = (other) => {
    against = other;
    load();
  };

  const draw = () => {
    const halves = ["source", "prefix"].filter((name) => answered[name]);
    if (!halves.includes(side)) side = halves[0];
    const options = [
      {value: "source", text: "Source"},
      {value: "prefix", text: "Written before"},
    ];
    const onchange = (value) => {
      side = value;
      draw();
    };
    part.replaceChildren(
      ...(halves.length > 1 ? [segmented({label: "Words read", options, value: side, onchange})] : []),
    );
    const columns = side === "source" ? answered.columns : answered.read;
    const share = answered.source_share && unpack(answered.source_share).data;
    const mean = share && share.length ? share.reduce((sum, one) => sum + one, 0) / share.length : null;
    const told = [
      answered.origin,
      mean === null ? "" : `the source’s share of all is ${percent(mean)}`,
      exactness(answered),
    ];
    origin.textContent = told.filter(Boolean).join("; ");
    if (!answered.rows.length || !columns.length) {
      const none = "No word was read before one was written, so none can have mattered.";
      return place.replaceChildren(element("p.note", none));
    }
    const map = maps[answered.unit === "share" ? "share" : "diverging"];
    place.replaceChildren(map.node);
    map.show({rows: answered.rows, columns, values: answered[side].data});
  };

  const fetch = async (method, signal) => {
    const [plain, head] = method.split(", ");
    const asked = {
      ...question,
      method: plain,
      ...(head ? {head} : {}),
      ...(against ? {against: against.piece, step: against.step} : {}),
    };
    const answer = await post("/api/v1/importance", asked, {signal});
    for (const name of ["source", "prefix"]) answer[name] = answer[name] && unpack(answer[name]);
    return answer;
  };

  const load = async () => {
    if (!question) return;
    offer();
    answered = null;
    part.replaceChildren();
    origin.textContent = "";
    place.replaceChildren(skeleton("square"));
    try {
      const answer = await ask((signal) => (kind === "difference" ? difference(fetch, signal) : fetch(kind, signal)));
      if (!answer) return;
      answered = answer;
      draw();
    } catch (problem) {
      place.replaceChildren(trouble(problem, load));
    }
  };

  return {
    node,
    leave() {
      ask.stop();
      Object.values(maps).forEach((map) => map.leave());
    },
    view(chosen, of) {
      const next = chosen in KINDS ? chosen : usual(of);
      if (next === kind) return;
      kind = next;
      load();
    },
    why: contrastWith,
    /** Ask for the numbers of a sentence. */
    load(next, nextTrace) {
      [question, trace, against] = [next, nextTrace, null];
      return load();
    },
  };
}

/** How exact the numbers are: of integrated gradients the sum is fitted, so that its own error would say nothing. */
function exactness({completeness_error: sum, quadrature_error: parts}) {
  if (parts != null) return `quadrature error ${percent(parts)}, then weights were fitted to the sum`;
  return sum ? `completeness error ${sum.toExponential(1)}` : "";
}

/** What is shown first: what was measured to be the most faithful for this run, else masking. */
const usual = (trace) => (trace?.measured && trace.measured.best in KINDS ? trace.measured.best : "masking");

/** Share of attention, less share of the effects of masking above zero. */
async function difference(fetch, signal) {
  const masked = await fetch("masking", signal);
  const looked = await fetch("attention", signal);
  const part = masked.source ? "source" : "prefix";
  const width = looked[part].shape[1];
  const shares = (values) => {
    const kept = Array.from(values, (value) => Math.max(0, value));
    return kept.map((value, at) => {
      const first = at - (at % width);
      return value / (kept.slice(first, first + width).reduce((sum, one) => sum + one, 0) || 1);
    });
  };
  const mattered = shares(masked[part].data);
  const data = Float32Array.from(shares(looked[part].data), (value, at) => value - mattered[at]);
  const origin = "share of the row’s attention, less share of its masking effects above zero";
  return {...masked, source: null, prefix: null, [part]: {data}, source_share: null, origin};
}
