import js from "@eslint/js";

export default [
  {ignores: ["src/regard/manual/"]}, // what mkdocs made
  {
    files: ["**/*.js"],
    linterOptions: {reportUnusedDisableDirectives: "error"},
    rules: {
      ...js.configs.recommended.rules,
      "no-undef": "off", // tsc knows which names a browser has
      "no-unused-vars": ["error", {ignoreRestSiblings: true, varsIgnorePattern: "^_", argsIgnorePattern: "^_"}],
      "array-callback-return": "error",
      "default-param-last": "error",
      eqeqeq: ["error", "always", {null: "ignore"}],
      "no-else-return": "error",
      "no-implicit-coercion": "error",
      "no-lonely-if": "error",
      "no-param-reassign": "error",
      "no-promise-executor-return": "error",
      "no-self-compare": "error",
      "no-shadow": "error",
      "no-template-curly-in-string": "error",
      "no-unneeded-ternary": "error",
      "no-unused-expressions": ["error", {allowShortCircuit: true, allowTernary: true}],
      "no-useless-concat": "error",
      "no-useless-rename": "error",
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      "require-atomic-updates": "error",
    },
  },
];
