// Scripts that have no spaces between words.

const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}。！？」』）]/u;

/** Whether a text has letters, or full stops, of such a script. */
export const unspaced = (text) => UNSPACED.test(text);
