// Formulas: the TeX that walkthroughs are written in, as MathML, which browsers typeset by themselves.
//
//   formula(String.raw`e_{ts} = \frac{q_t^\top k_s}{\sqrt{K}}`)   → <math display="block">…</math>
//
// It is a subset, and it is strict: what it does not know is an Error, and the page then shows the plain formula.

const MATHML = "http://www.w3.org/1998/Math/MathML";

const LETTERS = {
  alpha: "α",
  beta: "β",
  gamma: "γ",
  theta: "θ",
  mu: "μ",
  sigma: "σ",
  phi: "ϕ",
  varepsilon: "ε",
  infty: "∞",
  top: "⊤",
  dots: "…",
};
const SIGNS = {cdot: "⋅", odot: "⊙", mapsto: "↦", leftarrow: "←", mid: "∣"};
const FENCES = {lVert: "‖", rVert: "‖"};
const FUNCTIONS = new Set(["sin", "cos", "tanh", "exp", "arg"]);
const UNDER = {sum: "∑", max: "max", min: "min"}; // what carries its index below it
const SPACES = {",": "0.167em", ";": "0.278em", "!": "-0.167em", quad: "1em"};
const ACCENTS = {hat: "ˆ", tilde: "˜", overline: "‾", overrightarrow: "→", overleftarrow: "←"};
const WIDE = new Set(["overline", "overrightarrow", "overleftarrow"]);
const OPENS = new Set(["(", "["]);
const PRIME = "′";

/** @param {string} tex @param {string} plain what a reader without pictures is told */
export function formula(tex, plain = "") {
  const reader = new Reader(tex);
  const row = reader.row(() => reader.done());
  return math("math", {display: "block", alttext: plain || null}, ...row);
}

function math(tag, attributes = {}, ...children) {
  const node = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const group = (nodes) => (nodes.length === 1 ? nodes[0] : math("mrow", {}, ...nodes));
const isSign = (node) => node?.localName === "mo" && node.getAttribute("form") !== "postfix";

class Reader {
  constructor(tex) {
    this.tokens = tex.match(/\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|./gsu) ?? [];
    this.place = 0;
  }

  done() {
    return this.place >= this.tokens.length;
  }

  /** The next token that is no space, left where it is. */
  peek() {
    while (/^\s/.test(this.tokens[this.place] ?? "")) this.place += 1;
    return this.tokens[this.place];
  }

  take() {
    const token = this.peek();
    if (token === undefined) throw new Error("the formula ends too early");
    this.place += 1;
    return token;
  }

  expect(token) {
    const found = this.take();
    if (found !== token) throw new Error(`${found}: ${token} would be right`);
  }

  /** Everything up to where `ends` says so. */
  row(ends) {
    const nodes = [];
    while (this.peek() !== undefined && !ends()) nodes.push(...this.scripted(nodes.at(-1)));
    return nodes;
  }

  /** {…} or a single token. */
  argument() {
    if (this.peek() !== "{") return group(this.atom(null));
    this.take();
    const nodes = this.row(() => this.peek() === "}");
    this.expect("}");
    return group(nodes);
  }

  /** The letters of {…}, spaces and all. */
  words() {
    this.expect("{");
    let text = "";
    while (this.tokens[this.place] !== "}") {
      if (this.done()) throw new Error("the formula ends too early");
      text += this.tokens[this.place++];
    }
    this.place += 1;
    return text;
  }

  /** An atom with what hangs on it: x'_{2i}, q_t^\top, \sum_s. */
  scripted(before) {
    const name = this.peek();
    const atoms = this.atom(before);
    const [above, below] = this.scripts();
    const word = name.slice(1);
    if (above || below) atoms.push(hung(atoms.pop(), above, below, word in UNDER));
    if (FUNCTIONS.has(word) || word in UNDER) this.air(atoms);
    return atoms;
  }

  scripts() {
    let below = null;
    const above = [];
    for (;;) {
      const token = this.peek();
      if (token !== "^" && token !== "_") return [above.length ? group(above) : null, below];
      this.take();
      if (token === "^") above.push(this.argument());
      if (token === "_") below = this.argument();
    }
  }

  /** "exp e" needs a little air, "exp(e)" none. */
  air(atoms) {
    const next = this.peek();
    if (next !== undefined && !OPENS.has(next) && next !== "\\!" && next !== "}") atoms.push(space(","));
  }

  /** One symbol, fraction, root, … without its scripts. Several nodes only where a space goes before a script. */
  atom(before) {
    const token = this.take();
    if (token.startsWith("\\")) return [this.command(token.slice(1))];
    if (token === "{") {
      this.place -= 1;
      return [this.argument()];
    }
    if (/^\p{L}/u.test(token)) return [this.letter(token)];
    if (/^[0-9]/.test(token)) return [math("mn", {}, token)];
    if ("()[]".includes(token))
      return [math("mo", {stretchy: "false", form: OPENS.has(token) ? "prefix" : "postfix"}, token)];
    if (token === "-") return [math("mo", {form: !before || isSign(before) ? "prefix" : "infix"}, "−")];
    if ("+=<>/,;".includes(token)) return [math("mo", {}, token)];
    throw new Error(`${token}: not a part of a formula that is known here`);
  }

  /**
   * A variable with its primes. Slanted by the style sheet (.tex), because the letters that MathML would put in its
   * place (U+1D6FC for α) are missing on machines without a font for mathematics.
   */
  letter(text) {
    let primes = "";
    while (this.peek() === "'") primes += PRIME.repeat(this.take().length);
    return math("mi", {mathvariant: "normal", class: /\p{L}/u.test(text) ? "slanted" : null}, text + primes);
  }

  command(name) {
    if (name in LETTERS) return this.letter(LETTERS[name]);
    if (name in SIGNS) return math("mo", {}, SIGNS[name]);
    if (name in FENCES)
      return math("mo", {form: name.startsWith("l") ? "prefix" : "postfix", stretchy: "false"}, FENCES[name]);
    if (name in SPACES) return space(name);
    if (name in ACCENTS) return this.accent(name);
    if (FUNCTIONS.has(name)) return math("mi", {}, name);
    if (name in UNDER)
      return math(
        "mo",
        {form: "prefix", movablelimits: "false", lspace: "0", rspace: name === "sum" ? null : "0"},
        UNDER[name],
      );
    switch (name) {
      case "text":
        return math("mtext", {}, this.words().replace(/^ | $/g, "\u00a0"));
      case "mathrm":
        return math("mi", {}, this.words());
      case "frac":
        return math("mfrac", {}, this.argument(), this.argument());
      case "tfrac":
        return math("mstyle", {displaystyle: "false"}, math("mfrac", {}, this.argument(), this.argument()));
      case "sqrt":
        return math("msqrt", {}, this.argument());
      case "left":
        return this.fenced();
      case "begin":
        return this.matrix();
    }
    throw new Error(`\\${name}: not a command that is known here`);
  }

  accent(name) {
    const sign = math("mo", {stretchy: WIDE.has(name) ? "true" : "false"}, ACCENTS[name]);
    return math("mover", {accent: "true"}, this.argument(), sign);
  }

  fenced() {
    const open = this.take();
    const inside = this.row(() => this.peek() === "\\right");
    this.expect("\\right");
    return math("mrow", {}, math("mo", {}, open), ...inside, math("mo", {}, this.take()));
  }

  /** \begin{pmatrix} a & b \\ c & d \end{pmatrix} */
  matrix() {
    const kind = this.words();
    if (kind !== "pmatrix") throw new Error(`${kind}: not a matrix that is known here`);
    /** @type {Element[][]} */
    const rows = [[]];
    for (;;) {
      const cell = this.row(() => ["&", "\\\\", "\\end"].includes(this.peek()));
      rows[rows.length - 1].push(math("mtd", {}, ...cell));
      const token = this.take();
      if (token === "\\end") break;
      if (token === "\\\\") rows.push([]);
    }
    if (this.words() !== kind) throw new Error("the matrix ends as another");
    const table = math("mtable", {}, ...rows.map((cells) => math("mtr", {}, ...cells)));
    return math("mrow", {}, math("mo", {}, "("), table, math("mo", {}, ")"));
  }
}

function space(name) {
  return math("mspace", {width: SPACES[name]});
}

function hung(base, above, below, under) {
  if (under && !above) return math("munder", {}, base, below);
  if (above && below) return math(under ? "munderover" : "msubsup", {}, base, below, above);
  return above ? math("msup", {}, base, above) : math("msub", {}, base, below);
}
