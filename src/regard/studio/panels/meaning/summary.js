// What the cosines come to, in three figures: of occurrences that are translated alike, of others, and of the control.

const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);

/**
 * @typedef {{sentence: string, word: string, place: number, control: boolean, translation: string}} Occurrence  a word
 *   in a sentence, as /api/v1/meaning has it
 * @param {{occurrences: Occurrence[], cosines: {at: (...place: number[]) => number}}} found
 * @returns {{same: number | null, different: number | null, all: number | null, control: number | null}} mean cosines
 *   at a layer
 */
export function summarise({occurrences, cosines}, layer) {
  const own = occurrences.map((one, place) => ({...one, at: place})).filter((one) => !one.control);
  const control = occurrences.map((one, place) => ({...one, at: place})).filter((one) => one.control);
  const told = own.every((one) => one.translation !== "");
  const of = (list, keep) =>
    mean(
      pairs(list)
        .filter(([one, other]) => keep(one, other))
        .map(([one, other]) => cosines.at(layer, one.at, other.at)),
    );
  const alike = (one, other) => one.translation === other.translation;
  return {
    same: told ? of(own, alike) : null,
    different: told ? of(own, (one, other) => !alike(one, other)) : null,
    all: of(own, () => true),
    control: of(control, () => true),
  };
}

const pairs = (list) => list.flatMap((one, place) => list.slice(place + 1).map((other) => [one, other]));

/** The control in the sentence of an occurrence, by place; undefined where it does not stand there. */
export function controlsOf(occurrences) {
  const waiting = occurrences.map((one, place) => ({...one, at: place})).filter((one) => one.control);
  return occurrences
    .filter((one) => !one.control)
    .map((one) => {
      const found = waiting.findIndex((other) => other.sentence === one.sentence);
      return found < 0 ? undefined : waiting.splice(found, 1)[0].at;
    });
}
