// Words with two meanings, in sentences as the built-in corpus has them: the company of the word settles which it is.

export const EXAMPLES = [
  {
    word: "bank",
    about: "money or river",
    sentences: ["the thief found the coin in the bank", "the banker counted the money in the bank", "the duck slept on the bank", "the turtle walked on the bank"],
  },
  {
    word: "bat",
    about: "animal or sport",
    sentences: ["the owl chased the bat", "the fox caught the bat", "the player bought the bat", "the boy broke the bat"],
  },
  {
    word: "nail",
    about: "finger or iron",
    sentences: ["the dancer painted the nail", "the nurse washed the nail", "the carpenter bought the nail", "the sailor found the nail"],
  },
  {
    word: "seal",
    about: "animal or stamp",
    sentences: ["the sailor saw the seal", "the fisherman fed the seal", "the king hid the seal", "the judge found the seal"],
  },
  {
    word: "spring",
    about: "season or water",
    sentences: ["the farmer slept during the spring", "the bird arrived during the spring", "the camel slept near the spring", "the goat walked near the spring"],
  },
];
export const CONTROL = "the";
