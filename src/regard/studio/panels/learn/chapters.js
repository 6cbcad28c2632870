// The steps of a walkthrough as a story: which chapter each belongs to, and what the chapter is about.

const CHAPTERS = {
  "encoder.words": [
    "Words become vectors",
    "A computer cannot read. Each piece of the sentence becomes a number, and each number a list of numbers: " +
      "a vector. From here on everything is arithmetic.",
  ],
  "encoder.self": [
    "Every word looks at every word",
    "Self-attention. Each piece asks a question, finds who has an answer, and takes a mixture of what they say. " +
      "That is how bank learns whether there is money or a river beside it.",
  ],
  "encoder.feed": [
    "Each word thinks by itself",
    "What was gathered from the neighbours is now worked on, piece by piece, " +
      "by a small network that is the same for all of them.",
  ],
  "encoder.cell": [
    "Reading, one piece after another",
    "A recurrent network has one state, which it changes with every piece it reads. Gates decide what is kept. " +
      "We stand at one piece and watch them.",
  ],
  "encoder.forward": [
    "Reading from left to right",
    "A recurrent network has one state, which it changes with every piece it reads. Gates decide what is kept. " +
      "We stand at one piece and watch them.",
  ],
  "encoder.backward": [
    "Reading from right to left",
    "A second network reads the sentence from its end, so that every place knows what comes after it too.",
  ],
  "encoder.both": ["Both readings together", "What comes before and what comes after, side by side."],
  context: [
    "What is handed over",
    "The last state of the encoder: a list of numbers that stands for the whole sentence. " +
      "Without attention the decoder gets nothing else, however long the sentence was.",
  ],
  "decoder.words": [
    "What is written so far becomes vectors",
    "The decoder writes one piece at a time and reads what it has written. Before the first there is only <start>.",
  ],
  "decoder.first": ["How the decoder begins", "What the encoder has understood becomes the decoder's first state."],
  "decoder.self": [
    "The translation looks at itself",
    "The same attention as in the encoder, with one rule more: no position sees what is not written yet.",
  ],
  cross: [
    "The translation looks at the source",
    "The decoder asks (queries), the source answers (keys and values). The weights are the alignment: " +
      "which words of the source are being translated now.",
  ],
  "decoder.feed": [
    "Each word thinks by itself",
    "The same kind of small network as in the encoder, with weights of its own.",
  ],
  "decoder.cell": [
    "The decoder's state moves on",
    "One step of the decoder: what it reads now changes its state, and gates decide what is kept.",
  ],
  "decoder.decide": ["Ready to decide", "All that is known at this step in one vector."],
  pool: ["One vector for the whole text", "A label for a text needs one vector, however long the text is."],
  output: [
    "From a vector to a word",
    "Every word of the vocabulary gets a score, the scores become probabilities, " +
      "and one of them is the word that is written.",
  ],
};

/** Where another task tells it otherwise: not all that is written is a translation. */
const OTHERWISE = {
  language: {
    "decoder.words": [
      "The text becomes vectors",
      "The model reads the text one piece at a time and predicts the next. Before the first there is only <start>.",
    ],
    "decoder.self": [
      "Every word looks at those before it",
      "Self-attention with one rule: no position sees what comes later, for that is what is to be predicted.",
    ],
    "decoder.feed": [
      "Each word thinks by itself",
      "What was gathered from the words before is now worked on, piece by piece, " +
        "by a small network that is the same for all of them.",
    ],
    "decoder.cell": [
      "Reading, one piece after another",
      "A recurrent network has one state, which it changes with every piece it reads. Gates decide what is kept.",
    ],
  },
  tag: {
    output: [
      "From a vector to a tag",
      "Every tag gets a score, the scores become probabilities, and the most probable is the word’s tag.",
    ],
  },
  classify: {
    context: ["One vector for the whole text", "A class for a text needs one vector, however long the text is."],
    output: [
      "From a vector to a class",
      "Every class gets a score, the scores become probabilities, and the most probable is the text’s class.",
    ],
  },
};

const WORDS = /^(encoder|decoder)\.(pieces|beside|embedded|positions|placed)$/;
const FEED = /\.(feed\.\w+|states|features)$/;
const DECIDE = new Set(["readout", "combine"]);

/** @returns the key of a step's chapter */
function chapter({name, part, kind}) {
  if (part === "output") return name.startsWith("pool.") ? "pool" : "output";
  if (part === "cross" || part === "context") return part;
  if (WORDS.test(name)) return `${part}.words`;
  if (name.includes(".first.")) return "decoder.first";
  if (name.includes(".self.") || name.endsWith(".attended")) return `${part}.self`;
  if (kind === "both_ways") return "encoder.both";
  if (DECIDE.has(kind)) return "decoder.decide";
  const way = /\.cell\.(forward|backward)\./.exec(name);
  if (way) return `encoder.${way[1]}`;
  if (name.includes(".cell.") || name === "decoder.input") return `${part}.cell`;
  return FEED.test(name) ? `${part}.feed` : part;
}

/**
 * Consecutive steps of the same chapter together, in the order in which the model takes them.
 * @typedef {import("./step.js").Step} Step
 * @typedef {{title: string, about: string, part: string, steps: {number: number, step: Step}[]}} Chapter
 * @returns {Chapter[]}
 */
export function chapters(steps, task = "translate") {
  const found = [];
  const told = {...CHAPTERS, ...OTHERWISE[task]};
  steps.forEach((step, number) => {
    const key = chapter(step);
    if (found.at(-1)?.key !== key) {
      const [title, about] = told[key] ?? [PARTS[step.part] ?? step.part, ""];
      found.push({key, title, about, part: step.part, steps: []});
    }
    found.at(-1).steps.push({number, step});
  });
  return found;
}

export const PARTS = {
  encoder: "Encoder",
  context: "From encoder to decoder",
  decoder: "Decoder",
  cross: "Attention to the source",
  output: "Output",
};

/** The way in about twelve steps: of the whole walk the first of each kind that the idea needs, in the model's order. */
const SHORT = [
  /\.pieces$/,
  /\.embedded$/,
  /\.placed$|\.rotated_queries$/,
  /\.self\.products$/,
  /\.self\.scores$/,
  /\.self\.weights$/,
  /\.self\.contexts$/,
  /\.self\.heads$/,
  /\.attended$/,
  /\.feed\.hidden$/,
  /\.cell\.(forward\.)?(forget|update)$/,
  /\.cell\.(forward\.)?candidate$/,
  /\.cell\.(forward\.)?(cell|hidden)$/,
  /\.cell\.(forward\.)?every$/,
  /\.final\.hidden$|\.mean$/,
  /\.first\.hidden$/,
  /\bcross\.weights$/,
  /^decoder\.cross\.contexts$/,
  /^decoder\.features$/,
  /^pool\.(mean|max|weights)$/,
  /^probabilities$/,
  /^probability$/,
];

/** @param {Step[]} steps  @returns {Step[]} all of them where there are hardly more */
export function shortWay(steps) {
  const attends = steps.some(({name}) => name.endsWith(".self.products"));
  const kept = new Set(
    SHORT.map((pattern) => steps.find(({name}) => pattern.test(name))).filter(
      (step) => step && !(attends && step.name === "decoder.features"),
    ),
  );
  return kept.size >= 5 && kept.size < steps.length ? steps.filter((step) => kept.has(step)) : steps;
}
