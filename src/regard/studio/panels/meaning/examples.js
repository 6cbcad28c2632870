// Words with two meanings, in sentences as the built-in corpus has them: the company of the word settles which it is.

export const EXAMPLES = [
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
export const CONTROL = "the";
