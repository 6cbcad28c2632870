// Words with two meanings: the company of the word settles which it is. English sentences are as the built-in corpus has
// them; other languages are those of imported runs. A run that learned from the user's own text may know none of them:
// it begins with a word of that text.

import {bare} from "../../pieces/question.js";
import {examplesOf} from "../runs/attempt.js";
import {has} from "./sentences.js";

const ENGLISH = [
  {
    word: "bank",
    about: "money or river",
    sentences: [
      "The thief found the coin in the bank.",
      "The banker counted the money in the bank.",
      "The duck slept on the bank.",
      "The turtle walked on the bank.",
    ],
  },
  {
    word: "bat",
    about: "animal or sport",
    sentences: [
      "The owl chased the bat.",
      "The fox caught the bat.",
      "The player bought the bat.",
      "The boy broke the bat.",
    ],
  },
  {
    word: "nail",
    about: "finger or iron",
    sentences: [
      "The dancer painted the nail.",
      "The nurse washed the nail.",
      "The carpenter bought the nail.",
      "The sailor found the nail.",
    ],
  },
  {
    word: "seal",
    about: "animal or stamp",
    sentences: [
      "The sailor saw the seal.",
      "The fisherman fed the seal.",
      "The king hid the seal.",
      "The judge found the seal.",
    ],
  },
  {
    word: "spring",
    about: "season or water",
    sentences: [
      "The farmer slept during the spring.",
      "The bird arrived during the spring.",
      "The camel slept near the spring.",
      "The goat walked near the spring.",
    ],
  },
];
const OTHERS = {
  de: [
    {
      word: "Bank",
      about: "Geld oder Sitz",
      control: "Die",
      sentences: [
        "Die Bank hat ihm Geld geliehen.",
        "Die Bank erhöht die Zinsen.",
        "Die Bank im Park ist aus Holz.",
        "Die Bank im Garten ist neu.",
      ],
    },
  ],
  es: [
    {
      word: "banco",
      about: "dinero o asiento",
      control: "El",
      sentences: [
        "El banco le prestó dinero.",
        "El banco subió los intereses.",
        "El banco del parque es de madera.",
        "El banco del jardín es nuevo.",
      ],
    },
  ],
  fr: [
    {
      word: "avocat",
      about: "métier ou fruit",
      control: "Cet",
      sentences: [
        "Cet avocat défend bien son client.",
        "Cet avocat a parlé au juge.",
        "Cet avocat est mûr et bon à manger.",
        "Cet avocat a un gros noyau.",
      ],
    },
  ],
  pt: [
    {
      word: "banco",
      about: "dinheiro ou assento",
      control: "O",
      sentences: [
        "O banco emprestou o dinheiro ao cliente.",
        "O banco aumentou os juros do empréstimo.",
        "O banco do parque é feito de madeira.",
        "O banco da cozinha tem três pernas.",
      ],
    },
  ],
  zh: [
    {
      word: "苹果",
      about: "水果 / 公司",
      control: "",
      sentences: ["苹果很甜，我每天吃一个。", "苹果和香蕉都很便宜。", "苹果发布了新手机。", "苹果的股票上涨了。"],
    },
  ],
};

const LONG = {eng: "en", deu: "de", spa: "es", fra: "fr", por: "pt", zho: "zh", cmn: "zh"}; // codes of three letters

/** Examples that a run can read; none where its language is not among those here, or a translator does not say it. */
export function examplesFor(run) {
  const first = run?.languages?.source?.split(/[-_]/)[0] ?? (run?.task === "translate" ? "" : "en");
  const code = LONG[first] ?? first;
  return code === "en" ? ENGLISH.map((each) => ({control: "the", ...each})) : (OTHERS[code] ?? []);
}

const DRAWN = 50; // validation sentences that a word is looked for in
const TAKEN = 4; // of those that have it
const LEAST = 4; // letters of a word that is no article

/** A word that several sentences of a run's own validation text have, the longest; none where no word is shared. */
export async function ownExamples(run) {
  if (!run || run.corpus?.startsWith("fable:")) return [];
  const texts = await examplesOf(run.name, DRAWN);
  const words = new Set(texts.flatMap((text) => text.split(/\s+/).map(bare)));
  const found = [...words]
    .filter((word) => word.length >= LEAST)
    .map((word) => ({word, sentences: texts.filter((text) => has(text, word)).slice(0, TAKEN)}))
    .filter(({sentences}) => sentences.length === TAKEN)
    .sort((one, other) => other.word.length - one.word.length);
  return found.slice(0, 1).map(({word, sentences}) => ({
    word,
    about: "in this run's own text",
    control: [...words].find((other) => other !== word && sentences.every((text) => has(text, other))) ?? "",
    sentences,
  }));
}
