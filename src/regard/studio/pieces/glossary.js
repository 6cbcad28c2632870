// What the words of the field mean, in a sentence each; one list for the help and for tooltips.

import {element} from "../element.js";

export const WORDS = {
  run: "A model with everything about its training: settings, curves, checkpoints. It is a folder.",
  BLEU:
    "How many short word sequences a translation shares with the reference, 0 to 100. Above 40 is usually good; " +
    "100 is the same text.",
  chrF2: "Like BLEU, but for sequences of letters: kinder to endings.",
  accuracy: "The share of labels that are right.",
  perplexity: "Among how many equally likely words the model would have to guess: lower is better, 1 is certain.",
  loss:
    "How surprised the model is by the right answer, per piece, in nats (a unit of information, 1.44 bits): " +
    "lower is better.",
  beam: "How many unfinished translations the search keeps at each step. 1 is greedy: always the likeliest next word.",
  attention: "Where the model looks: for each word it writes, weights over the words it reads, which add up to 1.",
  head: "One of several attentions that work side by side in a layer.",
  layer: "One step of the computation; its output is the input of the next.",
  gate: "A number between 0 and 1 with which a recurrent network keeps or forgets.",
  AER: "Alignment error rate: how far the words that attention links are from the right ones, 0 to 1; lower is better.",
  "log-probability":
    "The logarithm of a probability: 0 is certain, −0.7 is one half, −4.6 one in a hundred. " +
    "They add up along a sentence.",
  "validation text": "Text that the model does not learn from; scores are measured on it.",
  piece: "What a text is cut into for the model: a word, or a part of one.",
};

/** A word of the list, with what it means for those who point at it. */
export const term = (word, shown = word) =>
  WORDS[word] ? element("abbr", {title: WORDS[word]}, shown) : element("span", {}, shown);
