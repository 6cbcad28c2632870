// Made by `make docs` from src/regard/show/colours.py; change that, not this.

export const LEVELS = 40; // steps of a scale

export const COLOURS = {
  sequential: {
    light: "#f9fcfe #f1f9fd #e8f7fc #e0f4fc #d7f1fb #ceeefa #c5ebf9 #bde8f8 #b4e5f7 #aae2f6 #a1dff5 #98daf3 #90d4f1 #87ceee #7fc8ec #76c2e9 #6dbce7 #64b7e4 #5bb1e2 #51abdf #47a5dd #439ed8 #3f97d3 #3b90cf #3689ca #3282c5 #2f7bc0 #2b74bc #276db7 #2466b2 #205fae #2159a5 #22529c #224c93 #22458a #223f82 #21397a #203371 #1f2c69 #1e2661 #1d2059".split(" "),
    dark: "#1f2228 #20242e #222735 #232a3c #242c43 #252f4a #263251 #283459 #293760 #2a3a67 #2b3c6f #2b4275 #2a477b #2a4d81 #285387 #26598d #245e93 #21649a #1c6aa0 #1670a6 #0d76ad #137eaf #1986b1 #1e8db3 #2495b4 #299db6 #2fa5b8 #34adb9 #3ab4bb #40bcbc #45c4bd #5ec9bc #72cebc #85d3ba #96d8b9 #a6ddb8 #b6e2b6 #c5e7b4 #d4ebb2 #e3f0b0 #f2f5ae".split(" "),
  },
  diverging: {
    light: "#8e3c00 #974600 #a0500d #a9591a #b26325 #bb6d2f #c47738 #cd8141 #d58b4a #de9553 #e79f5c #eaa86e #edb27e #efbb8f #f1c59e #f3ceae #f5d7be #f7e0cd #f9e9dd #faf3ec #fcfcfc #ecf4fa #ddecf7 #cee5f5 #bfddf3 #b0d5f0 #a0cdee #90c5eb #80bde8 #70b5e5 #5eade2 #56a2da #4d96d1 #458bc8 #3d7fbf #3674b7 #2e69ae #275da5 #20529d #194794 #133c8b".split(" "),
    dark: "#ffc573 #f6bb6a #edb061 #e4a559 #db9b50 #d19048 #c8863f #bf7b36 #b6712d #ad6724 #a45d1a #96571f #885122 #7b4b24 #6d4525 #603f26 #533926 #463325 #3a2d24 #2e2823 #222222 #23282e #252f3a #273546 #283c53 #284360 #294a6d #29507b #295789 #285e97 #2765a5 #2f70ae #377bb6 #4087bf #4892c7 #519ed0 #59a9d9 #62b5e1 #6bc1ea #74cdf3 #7dd9fc".split(" "),
  },
};

// Of text on them.
export const INKS = {
  sequential: {
    light: "#000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff".split(" "),
    dark: "#ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000".split(" "),
  },
  diverging: {
    light: "#ffffff #ffffff #ffffff #ffffff #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff".split(" "),
    dark: "#000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #ffffff #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000 #000000".split(" "),
  },
};
